# Words of a list with commas.
_iosched_list() { compset -P '*,'; compset -S ',*'; compadd "$@" }

# Names of stored experiments, and files.
_iosched_stored() {
    local -a names db
    local at=${words[(i)--db]}
    (( at < CURRENT )) && db=(--db "${words[at + 1]}")
    names=("${(@f)$(_call_program names iosched stored-names "${db[@]}" 2>/dev/null)}")
    compadd -a names
    _default
}
