package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pgfsm/internal/config"
	"pgfsm/internal/test/check"
	"pgfsm/mcp/gateway"
)

// TestExposeWordsAgree shows that the configuration accepts the words that the gateway knows, and has the gateway's default.
func TestExposeWordsAgree(t *testing.T) {
	if diff := cmp.Diff(gateway.ExposeWords(), append(config.Exposable(), config.ExposeAll)); diff != "" {
		t.Errorf("words (-gateway +configuration):\n%s", diff)
	}
	files := map[string]string{
		"c.yaml": "version: 1\nservers: {a: {command: x}, b: {command: x, expose: all}, c: {command: x, expose: []}}\nallowlist: a.json\n",
		"a.json": "{}",
	}
	loaded, err := config.Load("c.yaml", func(name string) ([]byte, error) { return []byte(files[name]), nil }, config.Overrides{})
	check.NoError(t, err)
	var got []gateway.Expose
	for _, e := range loaded.Serve.Expose {
		set, err := gateway.ParseExpose(e.Words)
		check.NoError(t, err)
		got = append(got, set)
	}
	all, err := gateway.ParseExpose([]string{config.ExposeAll})
	if diff := cmp.Diff([]gateway.Expose{gateway.DefaultExpose, all, 0}, got); diff != "" || err != nil {
		t.Errorf("sets (-want +got), %v:\n%s", err, diff)
	}
}
