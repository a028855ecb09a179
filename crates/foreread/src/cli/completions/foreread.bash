# bash completion for foreread: every word is asked of foreread itself.
_foreread() {
    local cur kept='' line open='' files='' words=() reply=()
    read -ra words <<<"${COMP_LINE:0:COMP_POINT}"
    [[ ${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=('')
    # Variables may be set before the command.
    while ((${#words[@]} > 1)) && [[ ${words[0]} != "$1" ]]; do words=("${words[@]:1}"); done
    cur=${words[${#words[@]} - 1]}
    # bash takes : and = for the ends of words, and wants what follows them only.
    [[ $cur == *[:=]* ]] && kept=${cur%"${cur##*[:=]}"}
    COMPREPLY=()
    while IFS= read -r line; do
        if [[ $line == :files ]]; then files=1; continue; fi
        line=${line%%$'\t'*}
        [[ $line == *[:=] ]] && open=1
        COMPREPLY+=("${line#"$kept"}")
    done < <("$1" complete -- "${words[@]:1}" 2>/dev/null)
    # Alone, files are completed by bash itself (complete -o default), with their slashes.
    if [[ $files && ${#COMPREPLY[@]} -gt 0 && ! $kept ]]; then
        while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
    fi
    [[ $open ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _foreread foreread
