# For scripts that have set $root to the repository and entered it: gives every clone the same path, /mnt/wye, so that ccache
# finds what another clone has compiled without running the preprocessor. The script that reads this runs again in a mount
# namespace of its own, which ends with it. Needs root and the right to mount; otherwise the path stays as it is, and ccache
# finds the same files more slowly (CCACHE_BASEDIR in CMakePresets.json).
has_fixed_path() {
  case $root in
    /mnt/wye) return 0 ;;
    /mnt/*) [ ! -d /mnt/wye ] && return 0 ;; # a file system there would hide this repository
  esac
  [ "$(id -u)" != 0 ] || [ ! -d /mnt ] || ! unshare --mount true 2>/dev/null
}
has_fixed_path || exec unshare --mount sh -c '
  [ -d /mnt/wye ] || { mount -t tmpfs tmpfs /mnt && mkdir /mnt/wye; } || exit
  mount --bind "$1" /mnt/wye && cd /mnt/wye || exit
  script=$2
  shift 2
  exec "$script" "$@"' sh "$root" "/mnt/wye/.ci/${0##*/}" "$@"
