# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of fettle in fish. The program answers (orchestrator/cmd/complete.h), so that this file
# knows no command and cannot be out of date.

function __fettle_complete
    set -l typed (commandline -ct)
    set -l before (commandline -opc)
    for line in ($before[1] complete -- $before[2..-1] "$typed" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$typed"
            case :dirs
                __fish_complete_directories "$typed" ''
            case :recipes
                __fish_complete_suffix "$typed" .lua
            case '*'
                echo $line
        end
    end
end
complete -c fettle -f -a '(__fettle_complete)'
