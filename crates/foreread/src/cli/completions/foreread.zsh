#compdef foreread
# zsh completion for foreread: every word is asked of foreread itself.
_foreread() {
    local line word about files=
    local -a plain plain_about open open_about
    for line in "${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
        [[ -z $line ]] && continue
        if [[ $line == :files ]]; then files=1; continue; fi
        word=${line%%$'\t'*} about=${line#*$'\t'}
        if [[ $word == *[:=] ]]; then
            open+=("$word") open_about+=("$word  $about")
        else
            plain+=("$word") plain_about+=("$word  $about")
        fi
    done
    (( $#plain )) && compadd -l -d plain_about -a plain
    (( $#open )) && compadd -l -S '' -d open_about -a open
    [[ -n $files ]] && _files
    return 0
}
if [[ $funcstack[1] == _foreread ]]; then _foreread "$@"; else compdef _foreread foreread; fi
