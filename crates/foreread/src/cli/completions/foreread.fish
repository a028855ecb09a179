# fish completion for foreread: every word is asked of foreread itself.
function __foreread_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null | string match -v ':files'
end
complete -c foreread -a '(__foreread_complete)'
