# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
# Completion of fettle in bash. The program answers (orchestrator/cmd/complete.h), so that this file
# knows no command and cannot be out of date.

_fettle() {
	local line word=${COMP_WORDS[COMP_CWORD]} offered=()
	[[ $word == = ]] && word=
	while IFS= read -r line; do
		case $line in
		:files) mapfile -t -O "${#offered[@]}" offered < <(compgen -f -- "$word") ;;
		:dirs) mapfile -t -O "${#offered[@]}" offered < <(compgen -d -- "$word") ;;
		:recipes)
			mapfile -t -O "${#offered[@]}" offered < <(compgen -d -- "$word")
			mapfile -t -O "${#offered[@]}" offered < <(compgen -f -X '!*.lua' -- "$word")
			;;
		*) offered+=("${line%%$'\t'*}"); continue ;;
		esac
		compopt -o filenames 2>/dev/null # a slash behind a directory, blanks escaped
	done < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	COMPREPLY=("${offered[@]}")
}
complete -F _fettle fettle
