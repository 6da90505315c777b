
# What the definitions of the command line do not hold: words behind a comma, and names of stored experiments.
function __iosched_list -d 'The words of a list, each behind those that stand there already'
    set -l word (string replace -r -- '^--[a-z-]+=' '' (commandline -ct))
    set -l before (string match -r -- '^.*,' $word)
    printf '%s\n' "$before"$argv
end

function __iosched_stored -d 'Names of stored experiments'
    set -l words (commandline -opc)
    set -l db
    if set -l at (contains -i -- --db $words)
        set db --db $words[(math $at + 1)]
    end
    $words[1] stored-names $db 2>/dev/null
end

complete -c iosched -n "__fish_iosched_using_subcommand compare report" -a "(__iosched_stored)"
complete -c iosched -n "__fish_iosched_using_subcommand results; and __fish_seen_subcommand_from show export trace log edit delete" -a "(__iosched_stored)"
