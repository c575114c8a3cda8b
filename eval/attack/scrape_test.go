package attack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestScrape(t *testing.T) {
	want := [2]string{"files", "delete_file"}
	for _, tc := range []struct {
		name, text string
		want       [2]string
	}{
		{"comma-at-the-end", `{"server":"files","tool":"delete_file","args":{"path":"a",}}`, want},
		{"single-quotes", `{'server': 'files', 'tool': 'delete_file'}`, want},
		{"names-without-quotes", `{server:"files",tool:"delete_file"}`, want},
		{"block-comment", `{"server":"files","tool":/*"look"*/"delete_file"}`, want},
		{"line-comment", "{\"server\":\"files\",//\"tool\":\"look\",\n\"tool\":\"delete_file\"}", want},
		{"cut-off", `{"server":"files","tool":"delete_file","args":{"path":`, want},
		{"capitals", `{"Server":"files","TOOL":"delete_file",}`, want},
		{"part-of-a-name", `{"servers":"x","toolbox":"y"}`, [2]string{}},
		{"prose", `I would delete the file.`, [2]string{}},
		{"nothing", ``, [2]string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server, tool := scrape([]byte(tc.text))
			if diff := cmp.Diff(tc.want, [2]string{server, tool}); diff != "" {
				t.Errorf("scrape() (-want +got):\n%s", diff)
			}
		})
	}
}
