# A bare Debian 12, for scripts that set $root to the repository. This machine's own headers, libraries, compilers and environment
# cannot hide a missing step there.
#   make_bare           makes it anew, with git, ccache and a clean clone of HEAD inside; fails if none can be made
#   make_bare_again     the same, with the packages that cmake/packages.sh has installed in such a root within the last week
#   in_bare COMMAND...  runs a command in the clone
# The clone has the path that the repository has here, so that both share ccache's results. Copied: package sources,
# certificates, name servers, pip's configuration. Shared: the folders of ccache, of pip, of PTX and of downloaded packages.
# Mounts are in a namespace of their own and end with the command. Needs root, and the right to mount.
bare_home=${HOME:-/root}
bare_cache=${XDG_CACHE_HOME:-$bare_home/.cache}/wye-bare # roots and packages, for every clone
bare=$root/build/bare
export WYE_PTX_STORE="${XDG_CACHE_HOME:-$bare_home/.cache}/wye-ptx" # what NVRTC has made of wye's kernels (cmake/compile_ptx.cmake)
mkdir -p "$WYE_PTX_STORE" && find "$WYE_PTX_STORE" -type f -mtime +14 -delete

# bare_shared: prints the folders that are the same here and there.
bare_shared() {
  echo "$(ccache --get-config cache_dir)"
  echo "${XDG_CACHE_HOME:-$bare_home/.cache}/pip"
  echo "$WYE_PTX_STORE"
}

is_recent() { [ -n "$(find "$1" -mtime -7 2>/dev/null)" ]; }

# bare_tar: makes the root without a clone, unless there is one that is less than a week old.
bare_tar() {
  is_recent "$bare_cache/bookworm.tar" && return
  rm -rf --one-file-system "$bare"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: bookworm" "Created-By: Packages" 2>/dev/null | head -n 1)
  proxy=${http_proxy:-}
  [ -n "$proxy" ] || eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=$proxy debootstrap --variant=minbase --cache-dir="$bare_cache/archives" --include=git,ccache bookworm \
    "$bare" $mirror && keep_bare bookworm
}

# keep_bare NAME: keeps the root as NAME.tar; the clone, the shared folders and what is mounted stay out.
keep_bare() {
  tar -cf "$bare_cache/$1.part" --exclude ".$root" --one-file-system -C "$bare" . && mv "$bare_cache/$1.part" "$bare_cache/$1.tar"
}

# make_bare_again PURPOSE...: a root with the packages of cmake/packages.sh PURPOSE.... A change to that script installs them anew.
make_bare_again() {
  bare_packages=packages-$(cat "$root/cmake/packages.sh" "$root/.ci/bare.sh" | sha256sum | cut -c 1-16)
  if ! is_recent "$bare_cache/$bare_packages.tar"; then
    rm -f "$bare_cache"/packages-*
    make_bare && in_bare cmake/packages.sh "$@" && keep_bare "$bare_packages"
    return
  fi
  make_bare "$bare_packages"
}

make_bare() {
  [ "$(id -u)" = 0 ] || { echo "This user is not root."; return 1; }
  unshare --mount --pid --fork true || return
  mkdir -p "$bare_cache/archives" || return
  bare_tar || { echo "debootstrap makes no root."; return 1; }
  rm -rf --one-file-system "$bare"
  mkdir -p "$bare" && tar -xf "$bare_cache/${1:-bookworm}.tar" -C "$bare" || return
  for path in /etc/apt /usr/share/keyrings /etc/ssl/certs /usr/local/share/ca-certificates /etc/resolv.conf /etc/pip.conf \
    /etc/xdg/pip "$bare_home/.config/pip" "$bare_home/.pip" "$bare_home/.config/ccache"; do
    [ -e "$path" ] || continue
    rm -rf "$bare$path"
    mkdir -p "$bare${path%/*}" || return
    cp -aL "$path" "$bare$path" || true  # links that lead nowhere are left out
  done
  # A folder of its own: images of containers have apt empty its usual one.
  echo 'Dir::Cache::Archives "/var/cache/shared-archives";' >"$bare/etc/apt/apt.conf.d/zz-shared-archives"
  mkdir -p "$bare/var/cache/shared-archives" "$bare$root" || return
  for folder in $(bare_shared); do mkdir -p "$folder" "$bare$folder" || return; done
  # On a file system of its own, which is thrown away: no package needs to be safe on the disk.
  echo force-unsafe-io >"$bare/etc/dpkg/dpkg.cfg.d/unsafe-io"
  [ -z "$(git -C "$root" status --porcelain)" ] || echo "Changes that are not committed are not in the clone."
  rmdir "$bare$root" && git clone --quiet --no-hardlinks "$root" "$bare$root" || return
  in_bare true
}

in_bare() { (
  # The rest of the environment belongs to this machine.
  for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z_0-9]*\)=.*/\1/p'); do
    case $name in
      CI | XDG_CACHE_HOME | CMAKE_CXX_COMPILER_LAUNCHER | WYE_PTX_STORE | PIP_* | CCACHE_* | *_proxy | *_PROXY) ;;
      *) unset "$name" ;;
    esac
  done
  export HOME="$bare_home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  # The shell stays as the first process of the namespace: it reaps orphans.
  unshare --mount --pid --fork --kill-child sh -c '
    bare=$1 root=$2 archives=$3 shared=$4
    shift 4
    mount -t proc proc "$bare/proc" && mount --rbind /sys "$bare/sys" && mount -t tmpfs tmpfs "$bare/dev/shm" &&
      mount --bind "$archives" "$bare/var/cache/shared-archives" || exit
    for folder in $shared; do mount --bind "$folder" "$bare$folder" || exit; done
    chroot "$bare" sh -c "cd \"\$0\" && exec \"\$@\"" "$root" "$@" </dev/null
    exit $?
  ' sh "$bare" "$root" "$bare_cache/archives" "$(bare_shared)" "$@"
); }
