"""A second verifier of the audit log, for tests: written from docs/AUDIT_FORMAT.md, sharing no code with the first.

usage: verify_audit.py <folder>...   each with records.jsonl and, if there are any, checkpoints.notes, keys.json, receipt.json
prints one exit code a folder, those of `ganglion audit verify --strict`.
"""

import base64
import hashlib
import json
import re
import sys
from datetime import datetime
from pathlib import Path

from ed25519 import is_signed

ORDER = [10, 2, 3, 5, 6, 7, 4, 9, 11]
GRACE_S = 900
INT64 = ["credential_version", "epoch", "record_count", "redactions", "request_bytes", "response_bytes", "sequence"]
TEXT = ("boot_id call_key caller created_at credential_id destination detail effect hash instance kind log_id operation "
        "peer_address policy_digest prev reason request_id rule_id session_id target token_id vault_request_id "
        "workspace_id").split()
TEXT_2 = ["peer_spki_sha256", "tls_version"]
TEXT_3 = ("build caller_cert_sha256 hmac_key_id request_body_hmac response_body_hmac token_audience upstream_effect "
          "vault_token_accessor_hmac").split()
BODY = re.compile(r"ganglion/(log_[0-9a-f]{32})\n([1-9][0-9]*)\n(\S+)\nprev ([0-9a-f]{64})\ntime \S+\n")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def is_sound(value, line):
    if not isinstance(value, dict) or value.get("v") not in (1, 2, 3):
        return False
    is_third = value["v"] == 3
    text = TEXT + (TEXT_2 if value["v"] >= 2 else []) + (TEXT_3 if is_third else [])
    if set(value) != set(text + INT64 + ["status", "v"] + (["response_withheld"] if is_third else [])):
        return False
    if is_third and not isinstance(value["response_withheld"], bool):
        return False
    if not all(isinstance(value[k], str) for k in text + INT64) or not isinstance(value["status"], int):
        return False
    content = {k: v for k, v in value.items() if k != "hash"}
    return canonical(value) == line and hashlib.sha256(b"\0" + canonical(content).encode()).hexdigest() == value["hash"]


def read_keys(text, found):
    data, keys, before = json.loads(text), {}, None
    for entry in data["keys"]:
        name, key_id, encoded = entry["vkey"].split("+", 2)
        raw = base64.b64decode(encoded)
        own_id = hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8]
        said = f"ganglion audit key v1\n{entry['vkey']}\n{entry['created_at']}\n".encode()
        if key_id != own_id or name != "ganglion/" + data["log_id"]:
            found.add(6)
        elif before and not (entry.get("signed_by") == before[0]
                             and is_signed(before[1], said, base64.b64decode(entry.get("signature", "")))):
            found.add(6)
            return data["log_id"], None
        before = (key_id, raw[1:])
        keys[key_id] = raw[1:]
    return data["log_id"], keys


def open_note(note, log_id, keys):
    text, signatures = note.split("\n\n", 1)
    text += "\n"
    body = BODY.fullmatch(text)
    if not body or body[1] != log_id:
        return None
    is_known = False
    for line in signatures.splitlines():
        parts = line.split(" ")
        if len(parts) != 3 or parts[0] != "\u2014":
            return None
        try:
            raw = base64.b64decode(parts[2], validate=True)
        except ValueError:
            return None
        key = keys.get(raw[:4].hex())
        if key and parts[1] == "ganglion/" + log_id:
            if not is_signed(key, text.encode(), raw[4:]):
                return None
            is_known = True
    if not is_known:
        return None
    return int(body[2]), base64.b64decode(body[3]).hex(), body[4], hashlib.sha256(text.encode()).hexdigest()


def read_checkpoints(text, log_id, keys, found):
    blocks = [b for b in text.split("\n\n") if b.strip()]
    heads, before, digests = {}, None, {}
    for text_part, signatures in zip(blocks[::2], blocks[1::2]):
        opened = open_note(text_part.strip("\n") + "\n\n" + signatures, log_id, keys)
        if not opened:
            found.add(6)
            before = None
            continue
        size, head, prev, digest = opened
        if digests.get(size, digest) != digest or (before and (size <= before[0] or prev != before[3])):
            found.add(7)
        heads[size], digests[size], before = head, digest, opened
    return heads


def read_receipt(text, log_id, keys, heads, found):
    receipt = json.loads(text)
    record = receipt["record"]
    opened = open_note(receipt["checkpoint"].rstrip("\n"), log_id, keys)
    if not opened or not is_sound(record, canonical(record)) or opened[0] < int(record["sequence"]):
        found.add(6)
        return None
    if heads.setdefault(opened[0], opened[1]) != opened[1]:
        found.add(7)
    return record


def verify(folder):
    found, heads, receipt, log_id = set(), {}, None, None
    read = lambda name: (folder / name).read_text() if (folder / name).exists() else ""
    if read("keys.json"):
        log_id, keys = read_keys(read("keys.json"), found)
        if keys:
            heads = read_checkpoints(read("checkpoints.notes"), log_id, keys, found)
            if read("receipt.json"):
                receipt = read_receipt(read("receipt.json"), log_id, keys, heads, found)
    last, anchors, requests, newest, seen, has_receipt, first = None, 0, {}, 0, set(), False, 0
    for line in read("records.jsonl").split("\n")[:-1]:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        sound = is_sound(record, line)
        if not sound:
            found.add(2)
        if not isinstance(record, dict) or not str(record.get("sequence", "")).isdigit() or "hash" not in record:
            last = last and (last[0], last[1], False)
            continue
        at = int(record["sequence"])
        if sound and log_id not in (None, record["log_id"]):
            found.add(2)
        if last is None:
            first = at
            if (at != 1 or record["prev"] != "0" * 64) and heads.get(at - 1) != record["prev"]:
                found.add(7 if at - 1 in heads else 5)
        elif at != last[0] + 1 or (sound and last[2] and record["prev"] != last[1]):
            found.add(3)
        if sound and at in heads:
            anchors += 1
            if heads[at] != record["hash"]:
                found.add(7)
        last = (at, record["hash"], sound)
        if not sound:
            continue
        if receipt and record["session_id"] == receipt["session_id"]:
            seen |= {at} if at < int(receipt["sequence"]) else set()
            if at == int(receipt["sequence"]):
                has_receipt = True
                if record != receipt:
                    found.add(7)
        when = datetime.fromisoformat(record["created_at"].replace("Z", "+00:00")).timestamp()
        newest = max(newest, when)
        kind, request = record["kind"], record["request_id"]
        if kind == "decision" and record["effect"] == "allow":
            requests[request] = when
        elif kind in ("dispatch", "outcome", "recovery"):
            if request not in requests:
                found |= {9} if first == 1 else set()
            elif kind != "dispatch":
                del requests[request]
    if any(newest - when > GRACE_S for when in requests.values()):
        found.add(9)
    if heads and max(heads) > (last[0] if last else 0):
        found.add(4 if last else 10)
    if receipt and not has_receipt:
        found.add(4)
    elif receipt and first == 1 and len(seen) != int(receipt["record_count"]):
        found.add(3)
    if anchors == 0:
        found.add(11)
    return next((code for code in ORDER if code in found), 0)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(verify(Path(name)))
