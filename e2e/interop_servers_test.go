package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/test/clitest"
)

// offered are the tools that each server lists for a client without capabilities: server-everything keeps
// those back that need sampling, elicitation or roots.
var offeredTools = []struct{ server, tools string }{
	{"everything", "echo get-annotated-message get-env get-resource-links get-resource-reference get-structured-content " +
		"get-sum get-tiny-image gzip-file-as-resource toggle-simulated-logging toggle-subscriber-updates " +
		"trigger-long-running-operation simulate-research-query"},
	{"filesystem", "read_file read_text_file read_media_file read_multiple_files write_file edit_file create_directory " +
		"list_directory list_directory_with_sizes directory_tree move_file search_files get_file_info " +
		"list_allowed_directories"},
	{"memory", "create_entities create_relations add_observations delete_entities delete_observations delete_relations " +
		"read_graph search_nodes open_nodes"},
	{"sequential-thinking", "sequentialthinking"},
}

// listed is the catalog as `pgfsm tools --json` gives it: of each server what it offers, and each definition's digest.
func listed(t *testing.T, config string) (tools, digests map[string]string) {
	t.Helper()
	r := command(t.Context(), nil, "tools", "--json", "-c", config)
	r.Want(t, exitYes)
	tools, digests = make(map[string]string), make(map[string]string)
	for i := 0; ; i++ {
		at := fmt.Sprintf("/tools/%d/", i)
		server, name := r.Member(at+"server"), r.Member(at+"name")
		if name == "" {
			return tools, digests
		}
		tools[server] = strings.TrimSpace(tools[server] + " " + name)
		digests[server+" "+name] = r.Member(at + "definition")
		r.Want(t, exitYes, at+"dialect", "draft-07", at+"allowed", "true", at+"code", "")
	}
}

// TestInteropCatalogs: every tool of every server is understood, in the dialect that it declares, and has the same
// definition in every listing and over every transport.
func TestInteropCatalogs(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	dir := t.TempDir()
	servers := []string{
		"everything: " + in.stdio("everything", ""), "everything-sse: " + in.over(t, "sse", ""),
		"everything-http: " + in.over(t, "http", ""), "filesystem: " + in.stdio("filesystem", "", dir),
		"memory: " + in.stdio("memory", memoryIn(dir)), "sequential-thinking: " + in.stdio("sequential-thinking", ""),
	}
	want, allowed := make(map[string]string), []string(nil)
	for _, o := range offeredTools {
		names := []string{o.server}
		if o.server == "everything" {
			names = []string{o.server, o.server + "-sse", o.server + "-http"}
		}
		for _, name := range names {
			want[name] = o.tools
			allowed = append(allowed, fmt.Sprintf(`%q: ["%s"]`, name, strings.Join(strings.Fields(o.tools), `", "`)))
		}
	}
	dir = clitest.Folder(t, "pgfsm.yaml", "version: 1\nallowlist: allowlist.json\nservers:\n  "+strings.Join(servers, "\n  ")+"\n",
		"allowlist.json", "{"+strings.Join(allowed, ", ")+"}")
	config := filepath.Join(dir, "pgfsm.yaml")
	tools, first := listed(t, config)
	if d := cmp.Diff(want, tools); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	_, second := listed(t, config)
	if d := cmp.Diff(first, second); d != "" {
		t.Errorf("the definitions changed (-first +second):\n%s", d)
	}
	for _, name := range strings.Fields(offeredTools[0].tools) {
		stdio, sse, http := first["everything "+name], first["everything-sse "+name], first["everything-http "+name]
		if stdio == "" || stdio != sse || stdio != http {
			t.Errorf("definition of %s = %q, %q, %q, want the same over stdio, SSE and HTTP", name, stdio, sse, http)
		}
	}
}

// everything are calls of server-everything.
var everythingCalls = []interopCall{
	{"text", "echo", `{"message": "hi"}`, exitYes, and(rawAnswer, "/raw/content/0/text", "Echo: hi")},
	{"sum", "get-sum", `{"a": 2, "b": 3}`, exitYes, and(rawAnswer, "/raw/content/0/text", "The sum of 2 and 3 is 5.")},
	// The server would take an argument that its schema does not name.
	{"argument-that-the-schema-does-not-name", "echo", `{"message": "hi", "more": 1}`, exitNo, argsRefused},
	{"argument-missing", "echo", `{}`, exitNo, argsRefused},
	{"argument-of-another-type", "get-sum", `{"a": "2", "b": 3}`, exitNo, argsRefused},
	{"typed", "get-structured-content", `{"location": "Chicago"}`, exitYes,
		and(typedAnswer, "/typed/temperature", "36", "/typed/humidity", "82", "/typed/conditions", "Light rain / drizzle")},
	{"not-in-the-enumeration", "get-structured-content", `{"location": "Paris"}`, exitNo, argsRefused},
	{"image", "get-tiny-image", `{}`, exitYes,
		and(rawAnswer, "/raw/content/1/type", "image", "/raw/content/1/mimeType", "image/png")},
	{"annotated", "get-annotated-message", `{"messageType": "success", "includeImage": true}`, exitYes,
		and(rawAnswer, "/raw/content/0/annotations/priority", "0.7", "/raw/content/0/annotations/audience/0", "user",
			"/raw/content/1/type", "image")},
	{"resource-links", "get-resource-links", `{"count": 2}`, exitYes,
		and(rawAnswer, "/raw/content/2/type", "resource_link", "/raw/content/2/uri", "demo://resource/dynamic/text/2")},
	{"resource", "get-resource-reference", `{"resourceType": "Text", "resourceId": 1}`, exitYes,
		and(rawAnswer, "/raw/content/1/type", "resource", "/raw/content/1/resource/uri", "demo://resource/dynamic/text/1")},
	{"long-running", "trigger-long-running-operation", `{"duration": 0.2, "steps": 4}`, exitYes, and(rawAnswer,
		"/raw/content/0/text", "Long running operation completed. Duration: 0.2 seconds, Steps: 4.")},
	// Its execution.taskSupport is "required", and we announce no tasks: the server says so in a result, not in an error.
	{"needs-a-task", "simulate-research-query", `{"topic": "tea"}`, exitYes, toolComplaint},
	{"reads-the-environment", "get-env", `{}`, exitNo, toolDenied},
	{"fetches-from-anywhere", "gzip-file-as-resource", `{}`, exitNo, toolDenied},
	// These are there for clients that announce sampling, elicitation and roots. We announce nothing.
	{"needs-sampling", "trigger-sampling-request", `{"prompt": "hi"}`, exitNo, toolUnknown},
	{"needs-elicitation", "trigger-elicitation-request", `{}`, exitNo, toolUnknown},
	{"needs-roots", "get-roots-list", `{}`, exitNo, toolUnknown},
}

const everythingAllowed = `["echo", "get-sum", "get-structured-content", "get-tiny-image", "get-annotated-message",
"get-resource-links", "get-resource-reference", "trigger-long-running-operation", "simulate-research-query",
"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"]`

// TestInteropEverything: the same calls come to the same over every transport.
func TestInteropEverything(t *testing.T) {
	t.Parallel()
	in := matrix(t)
	for _, typ := range []string{"stdio", "sse", "http"} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			server := in.stdio("everything", "")
			if typ != "stdio" {
				server = in.over(t, typ, "")
			}
			dir := clitest.Folder(t, "pgfsm.yaml", "version: 1\nallowlist: allowlist.json\nservers:\n  everything: "+server+"\n",
				"allowlist.json", `{"everything": `+everythingAllowed+`}`)
			makeCalls(t, filepath.Join(dir, "pgfsm.yaml"), "everything", everythingCalls)
			replayAll(t, dir, len(everythingCalls))
		})
	}
}

// boiler is a text that a summary can quote.
const boiler = "The boiler was serviced on 2026-03-04 by Ada. It leaks at the second valve.\n"

func memoryIn(dir string) string {
	return fmt.Sprintf(", env: {MEMORY_FILE_PATH: %q}", filepath.Join(dir, "memory.jsonl"))
}
