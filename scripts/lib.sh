# shellcheck shell=bash
# Shared by the scripts here; sourced, not run.

# What this machine is missing of the programs named as PROGRAM=PACKAGE.
missing_packages() {
    local pair
    for pair in "$@"; do
        if ! command -v "${pair%%=*}" >/dev/null 2>&1; then
            printf '%s\n' "${pair#*=}"
        fi
    done
}

# Installs the programs named as PROGRAM=PACKAGE that are missing. Where it may not, it says what to do.
need_programs() {
    local missing=() sudo=() package
    while IFS= read -r package; do
        missing+=("$package")
    done < <(missing_packages "$@" | sort -u)
    if [ "${#missing[@]}" -eq 0 ]; then
        return 0
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "missing: ${missing[*]}; install them and run this again" >&2
            return 1
        fi
        sudo=(sudo)
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing: ${missing[*]}; install them with this system's package manager and run this again" >&2
        return 1
    fi
    echo "installing ${missing[*]}"
    # A list of packages that is only partly reachable is good enough when the packages are found.
    "${sudo[@]}" apt-get update -qq || true
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# Finds cargo also where rustup puts it, and checks that Rust is new enough.
need_rust() {
    local version minor dir
    if ! command -v cargo >/dev/null 2>&1; then
        for dir in "${CARGO_HOME:-}" "${HOME:-}/.cargo"; do
            if [ -n "$dir" ] && [ -x "$dir/bin/cargo" ]; then
                PATH="$dir/bin:$PATH"
                export PATH
            fi
        done
    fi
    if ! version=$(rustc --version 2>/dev/null) || ! command -v cargo >/dev/null 2>&1; then
        echo "Rust 1.95 or newer is needed and there is none: get it with rustup (the site is rustup dot rs)," >&2
        echo "or with this system's package manager if it is new enough, and run this again" >&2
        return 1
    fi
    minor=${version#rustc 1.}
    minor=${minor%%.*}
    if [ "$minor" -lt 95 ] 2>/dev/null; then
        echo "$version is too old, 1.95 is needed: run 'rustup update' and then this again" >&2
        return 1
    fi
}
