# Completion for ./course: source templates/course.bash
_course() {
    local word=${COMP_WORDS[COMP_CWORD]} former=${COMP_WORDS[COMP_CWORD - 1]} root
    root=$(dirname "${COMP_WORDS[0]}")
    case $former in
    --rig) COMPREPLY=($(compgen -W "gpu sim" -- "$word")) ;;
    --node) COMPREPLY=($(compgen -W "$(cd "$root/sim/nodes" && ls -- *.toml | sed 's/\.toml$//')" -- "$word")) ;;
    --submission | --out | grade | export) COMPREPLY=($(compgen -d -- "$word")) ;;
    check | watch | run | hint | diff | reset)
        COMPREPLY=($(compgen -W "$(cd "$root/lessons" && ls -d -- [0-9]-* | sed 's/-.*//') --rig --node" -- "$word")) ;;
    *)
        if [[ $COMP_CWORD -eq 1 ]]; then
            COMPREPLY=($(compgen -W "start check watch run hint diff reset grade export test" -- "$word"))
        else
            COMPREPLY=($(compgen -W "--rig --node --help" -- "$word"))
        fi
        ;;
    esac
}
complete -F _course ./course course
