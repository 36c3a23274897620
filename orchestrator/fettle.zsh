#compdef fettle
# SPDX-License-Identifier: GPL-2.0-or-later
# Completion of fettle in zsh: to lie as _fettle in a directory of $fpath. The program answers
# (orchestrator/cmd/complete.h), so that this file knows no command and cannot be out of date.

_fettle() {
	local line
	local -a lines words_with_text plain
	lines=("${(@f)$(${~${(Q)words[1]}} complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
	for line in $lines; do
		case $line in
		(:files) _files ;;
		(:dirs) _files -/ ;;
		(:recipes) _files -g '*.lua' ;;
		(*$'\t'*) words_with_text+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
		(?*) plain+=("$line") ;;
		esac
	done
	(( $#words_with_text )) && _describe fettle words_with_text
	(( $#plain )) && compadd -- $plain
}

_fettle "$@"
