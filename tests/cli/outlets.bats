#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
# How things stand, told outside of fettle, on the sample of nights (tests/unit/nights_sample.h), in
# which one regression is confirmed, worse and open, and one series has a hostile name.
bats_require_minimum_version 1.5.0

setup() {
	TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
	MONITORING=$TOP/recipes/monitoring
	cd "$BATS_TEST_TMPDIR" || return 1
	export FETTLE_WORKSPACE=$PWD/team
	unset http_proxy HTTP_PROXY all_proxy ALL_PROXY
	"$FETTLE_BUILD/tests/bench/nights" "$FETTLE_WORKSPACE"
}

teardown() {
	[ ! -f server.pid ] || kill "$(cat server.pid)"
}

# A server that answers with these statuses, one after the other, and keeps what it got as
# body-N.json; its URL, with a secret in it, is in the file `url`.
server() {
	cat >server.py <<-'END'
		import http.server, sys
		statuses, n = sys.argv[1:], 0
		class Handler(http.server.BaseHTTPRequestHandler):
		    def do_POST(self):
		        global n
		        body = self.rfile.read(int(self.headers["Content-Length"]))
		        open("body-%d.json" % n, "wb").write(body)
		        open("head-%d" % n, "w").write("%s\n%s" % (self.path, self.headers))
		        self.send_response(int(statuses[min(n, len(statuses) - 1)]))
		        self.send_header("Location", "/elsewhere")
		        self.end_headers()
		        self.wfile.write(b"no \x1b[31mblocks")
		        n += 1
		    def log_message(self, *args): pass
		s = http.server.HTTPServer(("127.0.0.1", 0), Handler)
		open("port.tmp", "w").write("http://127.0.0.1:%d/services/s3cret\n" % s.server_port)
		import os; os.chmod("port.tmp", 0o600); os.rename("port.tmp", "url")
		s.serve_forever()
	END
	serve server.py "$@"
}

# Start a server, whose URL is in the file `url` once it listens.
serve() {
	/usr/bin/python3 "$@" >server.log 2>&1 3>&- &
	echo $! >server.pid
	for _ in $(seq 600); do
		[ -s url ] && return
		sleep 0.1
	done
	cat server.log
	return 1
}

# -- metrics ------------------------------------------------------------------------------------

@test "metrics: promtool takes them, and finds nothing to say against their names" {
	run -1 "$FETTLE" regressions --metrics m.prom
	run -0 promtool check metrics <m.prom
	[ -z "$output" ]
	[ "$(tail -1 m.prom)" = '# EOF' ]
	[ "$(stat -c %a m.prom)" = 644 ]
	grep -qxF 'fettle_regression_change_ratio{workspace="'"$PWD"'/team",regression="1",workload="gpt-ddp",place="gpu",metric="step_time_ms",night="2026-11-10"} 0.052' m.prom
	grep -qF 'regression="1",kind="worse",level="confirmed"} 1' m.prom
	"$FETTLE" regressions ack 1 --note 'being worked on'
	run -0 "$FETTLE" regressions --as metrics
	[[ $output == *'regression="1",kind="worse",level="confirmed"} 0'* ]]
}

@test "metrics: a file that cannot be written is told, and the old one stays" {
	echo old >m.prom
	mkdir -p there
	run -4 "$FETTLE" regressions --metrics nowhere/m.prom
	[[ $output == *nowhere/m.prom* ]]
	run -4 "$FETTLE" regressions --metrics there
	[ "$(cat m.prom)" = old ]
	[ "$(ls -A there)" = '' ]
}

@test "metrics: a hostile name is one label" {
	run -1 --separate-stderr "$FETTLE" regressions --as metrics
	grep -F 'series="5"' <<<"$output" | head -1 >line
	grep -qF 'workload="<script>alert(1)</script>\"'"'"'&\\x1b[31m",place=' line
	[ "$(LC_ALL=C tr -d '\012\040-\176' <line | wc -c)" -eq 0 ]
}

@test "metrics: a file is bounded, and says what is not in it" {
	"$FETTLE_BUILD/tests/bench/nights" big 2010 1
	"$FETTLE" regressions -w big --metrics m.prom
	[ "$(grep -c '^fettle_series_value{' m.prom)" -eq 2000 ]
	grep -q '^fettle_series_omitted{.*} 10$' m.prom
}

# A night with a canary on scheduler fake, in the workspace of the sample.
night() {
	mkdir -p night
	cp "$TOP/tests/fixtures/recipes/canary.lua" night/
	echo '{"sd_run": 0.005}' >truth.json
	"$FETTLE" nightly night --fake truth.json --night 2026-11-30 "$@"
}

@test "metrics: rules, dashboard and documentation fit what a night writes" {
	run -1 --separate-stderr night --metrics m.prom
	[[ $stderr != *warning* ]]
	[ "$(LC_ALL=C tr -d '\012\040-\176' <<<"$output" | wc -c)" -eq 0 ]
	run -0 promtool check metrics <m.prom
	[ -z "$output" ]
	run -0 promtool check rules "$MONITORING/fettle-rules.yml"
	/usr/bin/python3 "$TOP/tests/cli/monitoring.py" m.prom "$MONITORING" >rules-test.yml
	promtool test rules rules-test.yml
	[ "$(sed -n 's/^fettle_night_status{.*} //p' m.prom)" -eq 1 ]
	[ "$(sed -n 's/^fettle_night_completed_timestamp_seconds{.*} //p' m.prom)" -gt 1700000000 ]
}

# -- webhook ------------------------------------------------------------------------------------

@test "webhook: what is new is posted once, and a closed one never" {
	server 200
	run -1 "$FETTLE" regressions --webhook-url-file url
	[ "$(sed -n 1p head-0)" = /services/s3cret ]
	grep -qi '^content-type: application/json' head-0
	jq -e '(.text | startswith("fettle: 1 new regression: +5.2 % [+4.7, +5.7] step_time_ms mean of gpt-ddp")) and
		.blocks[0].type == "header" and .blocks[0].text.type == "plain_text" and
		.blocks[1].type == "section" and .blocks[1].text.type == "mrkdwn" and .blocks[1].text.verbatim and
		(.blocks[1].text.text | contains("likeliest cause: nvidia_driver 550.90 -&gt; 570.12") and
			contains("`fettle regressions show 1 -w ")) and (.blocks | length) == 2' body-0.json
	run -1 "$FETTLE" regressions --webhook-url-file url
	[ ! -e body-1.json ]
	"$FETTLE" regressions ack 1 --note x
	"$FETTLE" regressions reopen 1 --note y
	run -1 env HOOK="$(cat url)" "$FETTLE" regressions --webhook-url-env HOOK
	[ ! -e body-1.json ]
}

@test "webhook: tried twice when the server is at fault; then it is told, without the secret, and sent the next time" {
	server 503 500 400 302 200
	run -4 "$FETTLE" regressions --webhook-url-file url
	[ -e body-1.json ] && [ ! -e body-2.json ]
	[[ $output == *'the webhook answered with status 500: no \x1b[31mblocks'* ]]
	[[ $output != *s3cret* ]]
	# what the server does not want is not sent twice, and nobody is followed elsewhere
	run -4 "$FETTLE" regressions --webhook-url-file url
	[[ $output == *'status 400'* ]] && [ ! -e body-3.json ]
	run -4 "$FETTLE" regressions --webhook-url-file url
	[[ $output == *'status 302'* ]] && [ ! -e body-4.json ]
	run -1 "$FETTLE" regressions --webhook-url-file url
	[ -e body-4.json ]
}

@test "webhook: nobody there; the metrics are written all the same" {
	server 200
	kill "$(cat server.pid)"
	rm server.pid
	run -4 "$FETTLE" regressions --webhook-url-file url --metrics m.prom
	[[ $output == *'the webhook was not reached: '* ]]
	[[ $output != *s3cret* ]]
	grep -q '^fettle_series_value' m.prom
}

@test "webhook: a certificate that nobody vouches for is refused" {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost 2>/dev/null
	cat >tls.py <<-'END'
		import http.server, os, ssl
		s = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
		c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
		c.load_cert_chain("cert.pem", "key.pem")
		s.socket = c.wrap_socket(s.socket, server_side=True)
		os.umask(0o077)
		open("tmp", "w").write("https://localhost:%d/s3cret" % s.server_port)
		os.rename("tmp", "url")
		s.serve_forever()
	END
	serve tls.py
	run -4 "$FETTLE" regressions --webhook-url-file url
	[[ $output == *'the webhook was not reached: '*certificate* ]]
}

@test "webhook: a night posts what it finds; what cannot be posted changes neither page nor status" {
	server 404 200
	run -1 --separate-stderr night --webhook-url-file url
	[[ $stderr == *'fettle nightly: warning: the webhook answered with status 404'* ]]
	[[ $output == *canary* ]]
	run -1 --separate-stderr night --webhook-url-file url --json
	[ -z "$stderr" ]
	jq -e . <<<"$output"
	jq -e '.text | startswith("fettle: ")' body-1.json
	run -1 --separate-stderr night --webhook-url-file url
	[ ! -e body-2.json ]
}

@test "webhook: the URL is a secret" {
	echo 'https://hooks.example.org/services/s3cret' >url
	chmod 644 url
	run -2 "$FETTLE" regressions --webhook-url-file url
	[[ $output == *'chmod 600'* ]]
	chmod 600 url
	for bad in 'http://hooks.example.org/s3cret' 'http://localhost.example.org/s3cret' 'http://127.0.0.1@example.org/s3cret' \
		'file:///etc/s3cret' 'https://' 's3cret'; do
		echo "$bad" >url
		run -2 "$FETTLE" regressions --webhook-url-file url
		[[ $output == *'url: its first line'* ]]
		[[ $output != *s3cret* ]]
	done
	run -2 "$FETTLE" regressions --webhook-url-env NOT_SET
	[[ $output == *'$NOT_SET'*'is not set'* ]]
	run -2 "$FETTLE" regressions --webhook-url-file none
	run -2 "$FETTLE" regressions --webhook-url-file "$PWD"
	run -2 "$FETTLE" regressions --webhook-url-file url --webhook-url-env HOOK
}

# -- mail, JUnit --------------------------------------------------------------------------------

# As a mail program shows it: words that say their coding (RFC 2047) are decoded.
subject_of() {
	/usr/bin/python3 -c 'import email, email.policy, sys
print(email.message_from_binary_file(open(sys.argv[1], "rb"), policy=email.policy.default)["subject"])' "$1"
}

@test "mail: in the reader's language, its subject too" {
	"$FETTLE" regressions --as mail --lang zh >letter || true
	[ "$(subject_of letter)" = 'fettle: 1 个未关闭的性能回退：+5.2 % [+4.7, +5.7] gpt-ddp（gpu）的 step_time_ms mean' ]
	[ "$(sed '/^$/q' letter | LC_ALL=C grep -c '[^ -~]')" -eq 0 ]
	[ "$(LC_ALL=C sed '/^$/q' letter | LC_ALL=C awk '{ if (length > n) n = length } END { print n }')" -le 78 ]
	sed '1,/^$/d' letter | grep -q '^回退 1：性能回退，已确认，未关闭$'
	# LANG says it as well, and the terminal's list keeps its columns
	LANGUAGE='' LC_ALL=zh_CN.UTF-8 run -1 "$FETTLE" regressions
	[[ $output == *'   1  未关闭        2026-'*'  变差     +5.2 % ['* ]]
	run -2 "$FETTLE" regressions --lang xx
	[[ $output == *'there is no translation into "xx": en, zh_CN'* ]]
	# programs read English
	LC_ALL=zh_CN.UTF-8 "$FETTLE" regressions --json >told || true
	[ "$(jq -r '.[0].state' told 2>/dev/null || jq -r '.regressions[0].state' told)" = open ]
}

@test "mail: a header, an empty line, plain text" {
	run -1 --separate-stderr --keep-empty-lines "$FETTLE" regressions --as mail --to 'ops@example.org'
	echo "$output" >letter
	[ "$(sed -n 1p letter)" = 'To: ops@example.org' ]
	[ "$(sed -n 2p letter)" = 'Subject: fettle: 1 open regression: +5.2 % [+4.7, +5.7] step_time_ms mean of gpt-ddp on gpu' ]
	[ "$(sed '/^$/q' letter | grep -vcE '^[A-Za-z-]+: [ -~]+$')" -eq 1 ] # the empty line
	sed '1,/^$/d' letter | grep -q '^regression 1: worse, confirmed, open$'
	run -2 "$FETTLE" regressions --as mail --to $'x@example.org\nBcc: y@example.org'
	"$FETTLE" regressions ack 1 --note x
	[ "$("$FETTLE" regressions --as mail | sed -n 1p)" = 'Subject: fettle: no open regression' ]
}

@test "mail: a hostile name stays in its line" {
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" "UPDATE series SET workload = 'a' || char(10) || 'Bcc: x@example.org' || char(10) ||
		char(228) || replace(hex(zeroblob(2000)), '0', 'w') WHERE workload = 'gpt-ddp'"
	"$FETTLE" regressions --as mail >letter || true
	[[ $(subject_of letter) == 'fettle: 1 open regression: '*'a Bcc: x@example.org '*w... ]]
	[ "$(sed '/^$/q' letter | LC_ALL=C grep -c '[^ -~]')" -eq 0 ]
	run ! grep -q '^Bcc' letter
	[ "$(LC_ALL=C awk '{ if (length > n) n = length } END { print n }' letter)" -le 998 ]
	# the same in a message: no piece of it longer than Slack takes
	[ "$("$FETTLE" regressions --as slack | jq '[.blocks[].text.text | length] | max')" -lt 3000 ]
	[ "$("$FETTLE" regressions --as slack | jq '.blocks[0].text.text | length')" -lt 150 ]
}

@test "slack: a hostile name calls nobody" {
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" "UPDATE series SET workload = '<!channel> \`*x*\` & @here' WHERE workload = 'gpt-ddp'"
	"$FETTLE" regressions --as slack >m.json || true
	jq -r '.. | strings' m.json >texts
	run ! grep -q '[<>]' texts
	grep -qF "&lt;!channel&gt; '*x*' &amp; @here" texts
}

@test "a hostile node is text in every format" {
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" "UPDATE cause SET kind = 'node', was = NULL, \"is\" = NULL,
		key = '<b>\"\$(touch x)' || char(10, 27) || '\"} 1' WHERE rank = 1"
	for format in metrics mail slack junit; do
		"$FETTLE" regressions --as $format >"told.$format" || true
		[ "$(LC_ALL=C tr -d '\012\040-\176' <"told.$format" | wc -c)" -eq 0 ]
	done
	promtool check metrics <told.metrics
	grep -qF 'cause="node <b>\"$(touch x) \\x1b\"} 1"} 1' told.metrics
	jq -r '.blocks[1].text.text' told.slack | grep -qF 'node &lt;b&gt;"$(touch x) \x1b"} 1'
	xmllint --noout --schema "$TOP/tests/cli/junit.xsd" told.junit
	grep -qF '1. node <b>"$(touch x) \x1b"} 1' told.mail
}

@test "junit: a test case a series, failed while a confirmed regression of it is open" {
	"$FETTLE" regressions --as junit >j.xml || [ $? -eq 1 ]
	xmllint --noout --schema "$TOP/tests/cli/junit.xsd" j.xml
	count() { xmllint --xpath "count($1)" j.xml; }
	[ "$(count //testcase)" -eq 6 ]
	[ "$(count //failure)" -eq 3 ]
	[ "$(xmllint --xpath 'string(/testsuites/@failures)' j.xml)" -eq 3 ]
	[ "$(count '//testcase[contains(@name, "(5)")]/system-out')" -eq 1 ]
	[ "$(count '//testcase[@classname="gpt-ddp.gpu" and contains(@name, "(1)")]/failure[contains(., "nvidia_driver")]')" -eq 1 ]
	# series that have ended take nothing with them
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" 'UPDATE series SET ended_us = 1 WHERE id IN (1, 3, 4)'
	"$FETTLE" regressions --as junit >j.xml || [ $? -eq 1 ]
	xmllint --noout --schema "$TOP/tests/cli/junit.xsd" j.xml
	[ "$(count '//testcase[@classname="regressions"]/failure')" -eq 1 ]
	"$FETTLE" regressions ack 1 --note x
	"$FETTLE" regressions --as junit >j.xml
	[ "$(count //failure)" -eq 0 ]
}

@test "junit: what no XML can hold is replaced" {
	sqlite3 "$FETTLE_WORKSPACE/fettle.db" "UPDATE series SET workload = char(65535, 65534, 7, 27) || ']]>&' WHERE workload = 'loader'"
	"$FETTLE" regressions --as junit >j.xml || true
	xmllint --noout --schema "$TOP/tests/cli/junit.xsd" j.xml
}

@test "outlets: usage" {
	run -2 "$FETTLE" regressions --as xml
	[[ $output == *'junit, mail, metrics, slack'* ]]
	run -2 "$FETTLE" regressions show 1 --as mail
	run -2 "$FETTLE" regressions ack 1 --note x --metrics m.prom
	run -2 "$FETTLE" regressions --as mail --json
	run -2 "$FETTLE" regressions --to x@example.org
}

@test "outlets: a workspace in which nothing was measured yet" {
	export FETTLE_WORKSPACE=$PWD/empty
	"$FETTLE_BUILD/tests/bench/nights" "$FETTLE_WORKSPACE" 0 0
	run -0 "$FETTLE" regressions --metrics m.prom
	run -0 promtool check metrics <m.prom
	"$FETTLE" regressions --as junit >j.xml
	xmllint --noout --schema "$TOP/tests/cli/junit.xsd" j.xml
	[ "$("$FETTLE" regressions --as slack | jq -r .text)" = 'fettle: no open regression' ]
}
