# Sourced by deploy/up and deploy/test: one virtual environment, .venv in the checkout, filled from the lock files.
# Needs bash, Python 3.11 or newer, and nothing else; uses uv where it is installed, because it is faster.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv

say() { printf '%s\n' "$*" >&2; }

have_uv() { uv --version >/dev/null 2>&1; } # asked to run: a version manager's empty stand-in does not count

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$candidate" >/dev/null 2>&1 &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer was not found: install it (Debian: sudo apt-get install python3 python3-venv), or name it: PYTHON=/path/to/python3 $0"
    return 1
}

make_venv() {
    local python
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c '' 2>/dev/null; then return; fi
    python=$(find_python)
    say "Making .venv with $("$python" --version)"
    rm -rf "$venv"
    if have_uv; then
        uv venv --quiet --python "$(command -v "$python")" "$venv"
    else
        "$python" -m venv "$venv" || {
            rm -rf "$venv"
            say "Python's venv module is missing: install it (Debian: sudo apt-get install python3-venv)"
            return 1
        }
    fi
}

# Installs a lock file unless the very same one was installed before.
install_lock() {
    local name=$1 lock=$root/deploy/locks/$1.lock installed=$venv/installed-$1.lock started=$SECONDS
    if cmp -s "$lock" "$installed"; then return; fi
    say "Installing what deploy/locks/$name.lock lists ($(grep -c '^[a-zA-Z0-9]' "$lock") packages)"
    if have_uv; then
        uv pip install --quiet --python "$venv/bin/python" --require-hashes -r "$lock"
    else
        local cache=()
        if [ "$name" = reports ]; then cache=(--no-cache-dir); fi # Spark alone would leave a gigabyte in pip's cache
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check ${cache[@]+"${cache[@]}"} --require-hashes -r "$lock"
    fi
    cp "$lock" "$installed"
    say "Installed in $((SECONDS - started)) s"
}

# Makes the checkout's packages importable in .venv from any folder, and gives it the gantry command.
link_checkout() {
    local packages
    packages=$(echo "$venv"/lib/python3*/site-packages)
    printf '%s\n' "$root" >"$packages/gantrymq-checkout.pth"
    printf '#!/bin/sh\nexec "%s/bin/python" -P -m appliance "$@"\n' "$venv" >"$venv/bin/gantry"
    chmod 755 "$venv/bin/gantry"
}
