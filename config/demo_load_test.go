package config_test

import (
	"testing"

	"pgfsm/config"
	"pgfsm/policy/schema"
)

// The demo is held to what every configuration is held to.
func TestTheDemoLoadsWithoutAWarning(t *testing.T) {
	loaded, err := config.Load(config.FileName, config.Demo.ReadFile, config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	for _, warning := range loaded.Warnings {
		t.Errorf("warning: %s", warning)
	}
	if got, want := len(loaded.Content.Outputs), len(schemaFiles(t)); got != want {
		t.Errorf("outputs = %d, want %d", got, want)
	}
	for _, output := range loaded.Content.Outputs {
		s, err := schema.Compile(output.Schema, schema.DefaultLimits())
		if err != nil {
			t.Errorf("type of %s: %v", output.Tool, err)
			continue
		}
		if open := s.Open(); len(open) > 0 {
			t.Errorf("type of %s leaves %q open", output.Tool, open)
		}
	}
}
