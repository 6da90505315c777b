
# What the definitions of the command line do not hold: words behind a comma, and names of stored experiments.
_iosched_words() {
    local lists=" @LISTS@ "
    _iosched "$@"
    local word="$2" i name
    if [[ "${word}" == *,* && "${lists}" == *" $3 "* ]]; then
        _iosched "$1" "${word##*,}" "$3"
        COMPREPLY=( "${COMPREPLY[@]/#/${word%,*},}" )
        return 0
    fi
    case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
        compare\ * | report\ *) (( COMP_CWORD >= 2 )) || return 0 ;;
        results\ show | results\ export | results\ trace | results\ log | results\ edit | results\ delete)
            (( COMP_CWORD >= 3 )) || return 0 ;;
        *) return 0 ;;
    esac
    # A value of an option is no experiment; flags have none.
    case "$3" in
        --all | --force | --json | --allow-inconclusive | --trials | --full | --wide | --no-color) ;;
        -*) return 0 ;;
    esac
    local db=()
    for (( i = 1; i < COMP_CWORD - 1; i++ )); do
        [[ "${COMP_WORDS[i]}" == --db ]] && db=(--db "${COMP_WORDS[i + 1]}")
    done
    if [[ "${word}" != -* ]]; then
        COMPREPLY=()
        while IFS= read -r name; do
            [[ "${name}" == "${word}"* ]] && COMPREPLY+=( "$(printf '%q' "${name}")" )
        done < <("$1" stored-names "${db[@]}" 2>/dev/null)
    fi
}
complete -F _iosched_words -o bashdefault -o default iosched
