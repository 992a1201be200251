# Runs one command in a bash of its own and carries the shell's state (directory, variables, functions, aliases,
# options, umask) from call to call through files. So the shell seems to persist (case B074) while each command has
# its own process session and its own output pipe, and one that breaks its shell breaks nothing for the next.
#
# Sourced with: the state folder, this file, the names of the base environment. It starts ahead of its command, loads
# the state, and waits for one line on standard input: the file that holds the command.
[[ -r $1/vars ]] && { source "$1/vars"; } 2>/dev/null
[[ -r $1/cwd ]] && { builtin cd -- "$(<"$1/cwd")" &>/dev/null || echo "(the shell's directory is gone; now in $PWD)"; }
__ganglion_dir=$1
__ganglion_base=$3
__ganglion_dump() {
  [[ -n ${__ganglion_dumped-} ]] && return
  __ganglion_dumped=1
  set +o > "$__ganglion_dir/opts.new"
  set +eufnvx
  shopt -p >> "$__ganglion_dir/opts.new"
  # A shell that errexit ended starts anew without it, as a fresh one would.
  [[ -n ${__ganglion_ended-} ]] || builtin printf 'set +e\n' >> "$__ganglion_dir/opts.new"
  builtin printf '%s' "$PWD" > "$__ganglion_dir/cwd.new"
  compgen -v > "$__ganglion_dir/names"
  builtin mapfile -t __ganglion_names < "$__ganglion_dir/names"
  {
    # So that a variable the command unset stays unset.
    builtin printf 'unset -v %s\n' "$__ganglion_base"
    for __ganglion_name in "${__ganglion_names[@]}"; do
      # What bash owns, and what belongs to one call only.
      case $__ganglion_name in
        BASH|BASHOPTS|BASHPID|BASH_*|COMP_WORDBREAKS|DIRSTACK|EPOCHREALTIME|EPOCHSECONDS|EUID|FUNCNAME|GROUPS) continue ;;
        HISTCMD|LINENO|OPTIND|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_) continue ;;
        GANGLION_CALL|__ganglion_*) continue ;;
      esac
      case ${!__ganglion_name@a} in *r*) continue ;; esac
      declare -p "$__ganglion_name"
    done
    declare -f
    declare -xF
    alias -p
    umask -p
  } > "$__ganglion_dir/vars.new"
  : > "$__ganglion_dir/complete"
}
IFS= builtin read -r __ganglion_file || exit 0
exec </dev/null 2>&1
__ganglion_command=$(<"$__ganglion_file")
set --
trap '{ __ganglion_dump; } 2>/dev/null' EXIT
[[ -r $__ganglion_dir/opts ]] && source "$__ganglion_dir/opts"
eval "$__ganglion_command"
{ __ganglion_status=$?; __ganglion_ended=1; __ganglion_dump; } 2>/dev/null
exit "$__ganglion_status"
