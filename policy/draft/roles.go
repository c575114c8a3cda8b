package draft

import (
	"slices"
	"strings"

	"pgfsm/policy"
	"pgfsm/policy/origin"
)

// roleWords are words in the names of arguments that suggest a role.
var roleWords = map[string][]string{
	origin.Target: {
		"to", "cc", "bcc", "recipient", "participant", "attendee", "invitee", "member", "user", "username", "owner", "assignee",
		"reviewer", "email", "mail", "phone", "address", "account", "iban", "wallet", "destination", "channel", "room", "group", "team",
		"url", "uri", "link", "host", "hostname", "domain", "endpoint", "webhook", "path", "file", "folder", "directory", "dir",
		"repo", "repository", "branch", "bucket", "database", "table", "project", "id", "key", "uuid",
		"permission", "role", "access", "visibility", "scope", "public", "private",
	},
	origin.Amount:  {"amount", "price", "cost", "fee", "total", "quantity", "sum"},
	origin.Content: {"subject", "body", "content", "text", "message", "title", "description", "comment", "note", "caption", "summary"},
}

// targetFormats are formats of JSON Schema that suggest a target.
var targetFormats = []string{"email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6", "uri", "uri-reference", "iri", "uuid"}

// urlWords suggest that a tool that only reads sends its argument somewhere.
var urlWords = []string{"url", "uri", "link", "endpoint", "host", "hostname", "domain"}

// Roles proposes roles for the arguments of a tool, from their names and formats and from the tool's annotations, and
// returns the arguments without a role. A person must review them.
func Roles(t *policy.Tool) (label origin.RoleLabel, without []string) {
	label.Server, label.Tool = t.Server, t.Name
	lists := map[string]*[]string{origin.Target: &label.Target, origin.Amount: &label.Amount, origin.Content: &label.Content}
	for _, a := range origin.Arguments(t.InputSchema) {
		to := &without
		if role := proposedRole(&a, t.Annotations); role != "" {
			to = lists[role]
		}
		path := origin.JoinPath(a.Path)
		for strings.HasSuffix(path, ".*") { // a role covers what is below
			path = strings.TrimSuffix(path, ".*")
		}
		*to = append(*to, path)
	}
	return label, without
}

func proposedRole(a *origin.Argument, hints policy.Annotations) string {
	words := a.Words()
	if hints.ReadOnly != nil && *hints.ReadOnly {
		leaves := hints.OpenWorld == nil || *hints.OpenWorld
		if leaves && (slices.ContainsFunc(words, func(w string) bool { return slices.Contains(urlWords, w) }) || a.Format == "uri") {
			return origin.Target
		}
		return ""
	}

	if slices.Contains(targetFormats, a.Format) {
		return origin.Target
	}
	// The last word says most, as in file_path and userId; the first comes next, as in recipient_name.
	for _, i := range []int{len(words) - 1, 0} {
		for _, role := range []string{origin.Target, origin.Amount, origin.Content} {
			if i >= 0 && (slices.Contains(roleWords[role], words[i]) || slices.Contains(roleWords[role], strings.TrimSuffix(words[i], "s"))) {
				return role
			}
		}
	}
	return ""
}
