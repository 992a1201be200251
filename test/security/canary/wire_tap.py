"""Records what goes over loopback until its standard input ends.

usage: wire_tap.py <file>   writes one line a segment: source port, destination port, payload in hex
Prints "ready" once it listens. Needs the right to open a packet socket.
"""

import select
import socket
import struct
import sys

ALL_PROTOCOLS = 3
OUTGOING = 4

tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
tap.bind(("lo", 0))
print("ready", flush=True)
dropped = 0
with open(sys.argv[1], "w") as out:
    while True:
        readable, _, _ = select.select([tap, sys.stdin], [], [])
        if tap in readable:
            frame, address = tap.recvfrom(1 << 17)
            # Loopback shows each packet twice, once as it leaves.
            if address[2] == OUTGOING:
                continue
            packet = frame[14:]
            if len(packet) < 20:
                continue
            if packet[0] >> 4 == 4:
                protocol, head = packet[9], (packet[0] & 15) * 4
                total = struct.unpack("!H", packet[2:4])[0] or len(packet)
            else:
                protocol, head, total = packet[6], 40, 40 + struct.unpack("!H", packet[4:6])[0]
            if protocol != 6:
                continue
            segment = packet[head:total]
            source, target = struct.unpack("!HH", segment[:4])
            payload = segment[(segment[12] >> 4) * 4:]
            if payload:
                out.write(f"{source} {target} {payload.hex()}\n")
        elif sys.stdin.read(1) == "":
            break
    # PACKET_STATISTICS: packets seen, packets lost.
    _, dropped = struct.unpack("II", tap.getsockopt(263, 6, 8))
print(f"dropped {dropped}", flush=True)
