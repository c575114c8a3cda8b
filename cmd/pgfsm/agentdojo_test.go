package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgfsm/internal/cli"
	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
)

// TestEvalDojoFilesAreGood: what the figures on AgentDojo rest on can be read as it is committed, means what its tests say, and has nothing
// in it that cannot be meant. The data itself is not part of the project.
func TestEvalDojoFilesAreGood(t *testing.T) {
	grants := 0
	for _, suite := range []string{"banking", "slack", "travel", "workspace"} {
		dir := copied(t, filepath.Join(repository, "eval", "agentdojo", suite))
		path := filepath.Join(dir, "pgfsm.yaml")
		for _, args := range [][]string{{"config", "check", "-c", path}, {"policy", "lint", "-c", path}} {
			if r := command(t.Context(), nil, args...); r.Code != cli.ExitYes {
				t.Errorf("pgfsm %q: exit code %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
			}
		}
		if tests := filepath.Join(dir, "tests.yaml"); suite == "banking" || suite == "slack" {
			if r := command(t.Context(), nil, "policy", "test", "-c", path, tests); r.Code != cli.ExitYes {
				t.Errorf("policy test %s: exit code %d\n%s%s", tests, r.Code, r.Stdout, r.Stderr)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "grants", "UserTask*.yaml"))
		check.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err == nil {
				_, err = config.ReadGrant(file, text)
			}
			if err != nil {
				t.Error(err)
			}
		}
		grants += len(files)
	}
	if grants != 86 {
		t.Errorf("there are %d grants, want 86", grants)
	}
}

// TestEvalDojoClaims proves what the policies promise about every call, and shows that each promise needs them: a change of the
// policies contradicts it.
func TestEvalDojoClaims(t *testing.T) {
	claims := 0
	for suite, changes := range map[string][][2]string{
		"../suites/approval-replay": {
			{"tool: payout}\n    effect: pending\n    approvers: [finance]\n    quorum: 2", "tool: payout}\n    effect: pending\n    approvers: [finance]\n    quorum: 1"},
			{"args.amount > 100.0", "args.amount > 100.5"},
			{"\"get_*\"}\n    effect: allow", "\"gets_*\"}\n    effect: allow"},
		},
		"../suites/confused-deputy": {
			{"('tenant-' + string(args.account)) in actor.roles && args.role == 'reader'\n    effect: pending", "args.role == 'reader'\n    effect: allow"},
			{"effect: pending\n    approvers: [support-lead]", "effect: allow"},
			{"('tenant-' + string(args.account)) in actor.roles && args.role == 'reader'", "args.role == 'owner'"},
			{"args.account.startsWith('test-')", "args.account.startsWith('test')"},
			{"tool: get_ticket}\n    effect: allow", "tool: get_ticket}\n    effect: deny"},
		},
		"../suites/exfiltration": {
			{"/?$')\n    effect: allow\n    reason: Pages", "/?')\n    effect: allow\n    reason: Pages"},
			{"?[.]example[.]com$')", "?[.]example[.]com')"},
			{"*@example[.]com$'", "*@example[.](com|org)$'"},
			{"tool: share_file}\n    effect: pending", "tool: share_file}\n    effect: allow"},
			{"tool: read_file}\n    effect: allow", "tool: read_file}\n    effect: pending"},
		},
		"../suites/parameter-smuggling": {
			{"(/[a-z0-9][a-z0-9-]*)+", "(/[a-z0-9.][a-z0-9.-]*)+"},
			{"*@example[.]com$'", "*@example[.]com'"},
			{"args.amount > 100.0", "args.amount > 200.0"},
			{"args.amount <= 1000.0", "args.amount <= 1000.5"},
			{"tool: search}\n    effect: allow", "tool: search}\n    effect: deny"},
		},
		"../suites/parser-differentials": {
			{" && !args.path.contains('..')", ""},
			{"args.path.startsWith('/srv/docs/')", "args.path.startsWith('/srv/')"},
			{"effect: allow", "effect: deny"},
		},
		"../suites/tool-poisoning": {
			{"tool_annotations.readOnlyHint && ", ""},
			{"@example[.]com$')", "@example[.]com')"},
			{"\"get_*\"}\n    effect: allow", "\"get_*\"}\n    effect: deny"},
		},
		"banking": {
			{"tool: send_money}\n    effect: pending", "tool: send_money}\n    effect: allow"},
			{"tool: schedule_transaction}\n    effect: pending", "tool: schedule_transaction}\n    effect: allow"},
			{"args.amount <= 5000)", "args.amount <= 5001)"},
			{"(has(args.recipient) && args.recipient != null) || ", ""},
			{"(has(args.last_name) && args.last_name != null)", "false"},
			{"[A-Za-z0-9_-]+([.]", "[./A-Za-z0-9_-]+([.]"},
			{"tool: update_password}\n    effect: pending", "tool: update_password}\n    effect: allow"},
			{"tool: read_file}\n    effect: allow", "tool: read_files}\n    effect: allow"},
		},
		"slack": {
			{"[.]com/?$')\n    reason: An address", "[.]com/?')\n    reason: An address"},
			{"(www[.])?our-company[.]com", "(www[.])?[a-z-]+[.]com"},
			{"tool: post_webpage}\n    effect: pending", "tool: post_webpage}\n    effect: allow"},
			{"(?i)^#?(general|random)$", "(?i)^#?(general|random|external)$"},
			{"tool: invite_user_to_slack}\n    effect: pending", "tool: invite_user_to_slack}\n    effect: allow"},
			{"tool: get_webpage}\n    effect: allow", "tool: get_webpages}\n    effect: allow"},
		},
		"travel": {
			{"tool: \"reserve_*\"}\n    effect: pending", "tool: \"reserve_*\"}\n    effect: allow"},
			{"tool: send_email}\n    effect: pending", "tool: send_email}\n    effect: allow"},
			{"^(get|check|search)_", "^(gets|check|search)_"},
			{"tool: get_user_information}\n    effect: pending", "tool: get_user_info}\n    effect: pending"},
		},
		"workspace": {
			{"tool: \"delete_*\"}\n    effect: pending", "tool: \"delete_*\"}\n    effect: allow"},
			{"tool: share_file}\n    effect: pending", "tool: share_file}\n    effect: allow"},
			{"tool: cancel_calendar_event}\n    effect: pending", "tool: cancel_calendar_event}\n    effect: allow"},
			{"^(get|list|search)_", "^(get|list)_"},
			{"\"!args.participants.all(", "\"!args.participants.exists("},
		},
	} {
		dir := copied(t, filepath.Join(repository, "eval", "agentdojo", suite))
		path, file := filepath.Join(dir, "pgfsm.yaml"), filepath.Join(dir, "policy.yaml")
		if r := command(t.Context(), nil, "policy", "prove", "-c", path); r.Code != cli.ExitYes {
			t.Errorf("policy prove of %s: exit code %d\n%s%s", suite, r.Code, r.Stdout, r.Stderr)
		}
		policies, err := os.ReadFile(file)
		check.NoError(t, err)
		broken := map[string]bool{}
		for _, change := range changes {
			if strings.Count(string(policies), change[0]) == 0 {
				t.Errorf("the policies of %s have no %q", suite, change[0])
			}
			check.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(policies), change[0], change[1])), 0o600))
			r := command(t.Context(), nil, "policy", "prove", "-c", path)
			if r.Code != cli.ExitNo {
				t.Errorf("%s: %q breaks no claim: exit code %d\n%s%s", suite, change[1], r.Code, r.Stdout, r.Stderr)
			}
			for _, m := range regexp.MustCompile(`(?m)^refuted  ([^ ]+)`).FindAllStringSubmatch(r.Stdout, -1) {
				broken[m[1]] = true
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, "claims.yaml"))
		check.NoError(t, err)
		for _, m := range regexp.MustCompile(`\bid: ([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			if claims++; !broken[m[1]] {
				t.Errorf("%s: no change contradicts the claim %s", suite, m[1])
			}
		}
	}
	if claims != 47 {
		t.Errorf("there are %d claims, want 47", claims)
	}
}

// copied is a folder of our own with the same files: those of a clone may be writable for others, and are refused then.
func copied(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	err := fs.WalkDir(os.DirFS(from), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, os.MkdirAll(filepath.Join(to, path), 0o700))
		}
		text, err := os.ReadFile(filepath.Join(from, path))
		return errors.Join(err, os.WriteFile(filepath.Join(to, path), text, 0o600))
	})
	check.NoError(t, err)
	return to
}
