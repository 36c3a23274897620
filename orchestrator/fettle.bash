# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Completion of fettle in bash. Commands and options come from the program itself, so that this file
# knows none of them and cannot be out of date.

_fettle_commands() {
	"$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *[a-z].*/\1/p'
}

_fettle_options() {
	"$@" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u
}

_fettle() {
	local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} command='' before i verb=()
	before=${COMP_WORDS[COMP_CWORD - 1]}
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }
	done
	if [[ -z $command || $command == help ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_fettle_commands "$program") --help --version" -- "$word")
		return
	fi
	if [[ $command == history && ${COMP_WORDS[i + 1]} =~ ^(import|watch)$ ]] && ((i + 1 < COMP_CWORD)); then
		verb=("${COMP_WORDS[i + 1]}")
	fi
	case $command:$before in
	*:-s | *:--scheduler) mapfile -t COMPREPLY < <(compgen -W 'local slurm slurm_cli fake' -- "$word") ;;
	*:--lang) mapfile -t COMPREPLY < <(compgen -W 'en zh' -- "$word") ;;
	report:-f | report:--format) mapfile -t COMPREPLY < <(compgen -W 'csv html json markdown' -- "$word") ;;
	check:--transport) mapfile -t COMPREPLY < <(compgen -W 'ib roce efa socket' -- "$word") ;;
	recommend:-a | recommend:--as) mapfile -t COMPREPLY < <(compgen -W 'env sbatch json config' -- "$word") ;;
	regressions:--as) mapfile -t COMPREPLY < <(compgen -W 'junit mail metrics slack' -- "$word") ;;
	probe:-a | probe:--as)
		mapfile -t COMPREPLY < <(compgen -W \
			"$("$program" probe --list 2>/dev/null | sed -n 's/^\([a-z][a-z0-9_]*\) .*/\1/p')" -- "$word")
		;;
	*)
		if [[ $word == -* ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_fettle_options "$program" "$command" "${verb[@]}")" -- "$word")
		elif [[ $command:$before == history:history ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'import watch' -- "$word")
		elif [[ $command == regressions ]]; then
			mapfile -t COMPREPLY < <(compgen -W 'show ack fix accept reopen bisect' -- "$word")
		elif [[ $command == knobs ]]; then
			mapfile -t COMPREPLY < <(compgen -W \
				"explain new $("$program" knobs 2>/dev/null | sed -n 's/^\([A-Za-z][A-Za-z0-9_]*\) .*/\1/p')" -- "$word")
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$word")
		fi
		;;
	esac
}
complete -o filenames -F _fettle fettle
