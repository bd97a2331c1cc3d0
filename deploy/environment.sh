# Sourced by deploy/up and deploy/test: one virtual environment, .venv in the checkout, filled from the lock files.
# Needs bash, Python 3.11 or newer, and nothing else; uses uv where it is installed, because it is faster.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv

say() { printf '%s\n' "$*" >&2; }

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; } # the head of the script that was called

have_uv() { uv --version >/dev/null 2>&1; } # asked to run: a version manager's empty stand-in does not count

# Prints the path of the best Python there is and words about it, a tab between; with PYTHON set, of that one. The first
# one wins, unless another was built better: that makes all that runs in .venv faster.
find_python() {
    local names=(python3 python3.14 python3.13 python3.12 python3.11 python) uv="" tab=$'\t'
    local name path score real rest best="" best_score=-1 seen="$tab" found=0
    if [ -n "${PYTHON:-}" ]; then names=("$PYTHON"); fi
    if have_uv; then uv=uv; fi
    for name in "${names[@]}"; do
        while IFS= read -r path; do
            # An older one, or a version manager's empty stand-in, prints nothing.
            rest=""
            IFS=$tab read -r score real rest < <("$path" "$root/deploy/rate_python.py" $uv 2>/dev/null) || :
            if [ -z "$rest" ]; then continue; fi
            case $seen in *"$tab$real$tab"*) continue ;; esac
            seen+=$real$tab found=$((found + 1))
            if [ "$score" -gt "$best_score" ]; then best_score=$score best=$rest; fi
        done < <(type -ap -- "$name")
    done
    if [ -z "$best" ]; then
        say "Python 3.11 or newer was not found: install it (Debian: sudo apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python3 $0"
        return 1
    fi
    if [ "$found" -gt 1 ]; then best+=", the best of $found found (PYTHON=… takes another)"; fi
    printf '%s\n' "$best"
}

# Root is refused before anything is installed as it would be afterwards: the options are those of `gantry up`.
refuse_root() { # [option ...]
    local found
    if [ "$EUID" -ne 0 ]; then return; fi
    found=$venv/bin/python
    if ! "$found" -c '' 2>/dev/null; then found=$(find_python); fi
    PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1 "${found%%$'\t'*}" -P -m appliance.cli.privileges "$@"
}

make_venv() {
    local found python
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
    found=$(find_python)
    python=${found%%$'\t'*}
    say "Making .venv with $python: ${found#*$'\t'}"
    rm -rf "$venv"
    if have_uv; then
        uv venv --quiet --python "$python" "$venv"
    else
        "$python" -m venv "$venv" || {
            rm -rf "$venv"
            say "Python's venv module is missing: install it (Debian: sudo apt-get install python3-venv)"
            return 1
        }
    fi
}

# The locks that are installed before one, because it leaves out what they have: a version stands in one file.
locks_before() { # name
    case $1 in
    postgresql | redis | bench) echo appliance ;;
    test) echo appliance postgresql redis ;;
    docs) echo appliance postgresql redis test ;;
    esac
}

# Installs a lock file, and those before it, unless the very same one was installed before; more arguments are options of pip.
install_lock() { # name [option ...]
    local name=$1 lock=$root/deploy/locks/$1.lock installed=$venv/installed-$1.lock started installer=pip why before
    for before in $(locks_before "$name"); do install_lock "$before" "${@:2}"; done
    started=$SECONDS
    if cmp -s "$lock" "$installed"; then return; fi
    say "Installing what deploy/locks/$name.lock lists ($(grep -c '^[a-zA-Z0-9]' "$lock") packages)"
    if have_uv; then installer=uv; fi
    why=$("$venv/bin/python" "$root/deploy/reach_index.py" "$installer") || why=""
    run_installer "$installer" "$why" "$lock" "${@:2}" || {
        if [ -n "$why" ]; then
            say "Packages could not be installed: $why." \
                "The first start needs the network, or another index (PIP_INDEX_URL; uv: UV_DEFAULT_INDEX)," \
                "or a folder with the packages (PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER; uv: UV_NO_INDEX=1 UV_FIND_LINKS=FOLDER)."
        fi
        return 1
    }
    cp "$lock" "$installed"
    say "Installed in $((SECONDS - started)) s"
}

run_installer() { # pip|uv, why the index can't be reached, lock file [option of pip ...]
    local options=(--no-deps --require-hashes "${@:4}") # a lock, with those before it, has all that its packages ask for
    if [ "$1" = uv ]; then
        if [ -n "$2" ]; then export UV_HTTP_RETRIES=0; fi
        uv pip install --quiet --python "$venv/bin/python" --no-deps --require-hashes -r "$3"
        return
    fi
    if [ -n "$2" ]; then options+=(--retries 0 --timeout 5); fi # no half minute of tries for each package
    if [ "${3##*/}" = reports.lock ]; then options+=(--no-cache-dir); fi # Spark alone would leave a gigabyte in pip's cache
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${options[@]}" -r "$3"
}

# Makes the checkout's packages importable in .venv from any folder, and gives it the gantry command.
link_checkout() {
    local packages
    packages=$(echo "$venv"/lib/python3*/site-packages)
    printf '%s\n' "$root" >"$packages/gantrymq-checkout.pth"
    printf '#!/bin/sh\nexec "%s/bin/python" -P -m appliance "$@"\n' "$venv" >"$venv/bin/gantry"
    chmod 755 "$venv/bin/gantry"
}

# Compiles the broker's fast path where it can be done; says in one line why not, and goes on. Quick when it is done.
compile_fast_path() {
    if prepare_fast_path; then "$venv/bin/python" -P -m appliance.fast_path.build || :; fi
}

# Installs Cython where there is a compiler: without one it would be of no use. Fails where nothing is to be compiled.
prepare_fast_path() {
    if [ "${GANTRY_FAST_PATH:-}" = off ]; then return 1; fi
    "$venv/bin/python" -P -m appliance.fast_path.build --look || return
    install_lock fast-path || say "Cython could not be installed"
}

# Unit tests make and remove stores by the thousand: in memory, where there is much, that costs half as much.
stores_in_memory() {
    if [ -z "${TMPDIR:-}" ] && [ -w /dev/shm ] &&
        [ "$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')" -gt $((2 * 1024 * 1024)) ]; then
        export TMPDIR=/dev/shm
    fi
}
