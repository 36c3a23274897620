#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# The dashboard against the types that Grafana publishes of its own (@grafana/schema), by TypeScript's compiler.

setup() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
	DIR=$TOP/build/grafana
}

types() {
	cat <<-'END'
		import { Dashboard } from "@grafana/schema/dist/esm/raw/dashboard/x/dashboard_types.gen";
		type Loose<T> = T extends string ? `${T}` : T extends Array<infer U> ? Loose<U>[] :
			T extends object ? { [K in keyof T]: Loose<T[K]> } & { [k: string]: unknown } : T;
		export const d: Loose<Dashboard> =
	END
	cat "$1"
	echo ';'
}

@test "the dashboard has the types of Grafana's own schema" {
	mkdir -p "$DIR"
	cd "$DIR"
	[ -d node_modules/typescript ] ||
		npm install --silent --ignore-scripts --no-audit --no-fund @grafana/schema@11.3.0 typescript@5.4.5
	types "$TOP/recipes/monitoring/fettle-dashboard.json" >board.ts
	run -0 npx tsc --noEmit --strict --skipLibCheck --moduleResolution node board.ts
	# the check does look
	sed 's/"absolute"/"relative"/' board.ts >wrong.ts
	run npx tsc --noEmit --strict --skipLibCheck --moduleResolution node wrong.ts
	[ "$status" -ne 0 ]
	[[ $output == *relative* ]]
}
