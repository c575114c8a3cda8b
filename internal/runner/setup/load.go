package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"pgfsm/internal/config"
	"pgfsm/internal/safefile"
	"pgfsm/policy"
)

// EmbeddedDemo names the configuration of the embedded demo.
const EmbeddedDemo = "the embedded demo"

// Options name a configuration, and override parts of it.
type Options struct {
	// The file; empty: PGFSM_CONFIG, then pgfsm.yaml in the working directory, then the embedded
	// demo.
	Config  string
	Demo    bool     // if Config is empty, the embedded demo; no file is searched
	Planner string   // replaces planner.mode
	Grants  []string // paths of additional grant files
	Closed  bool     // an allowlist that cannot be read allows nothing; without Closed it is an error
	Getenv  func(name string) (value string, ok bool)
	Version string // pgfsm's version, which it tells servers

	// The name of the user that runs the commands of stdio servers; empty: the user of this
	// process.
	ServerUser string

	read config.Open // nil: safefile.ReadTrusted
}

// readFile reads a file that decides what may run.
func (o *Options) readFile(path string) ([]byte, error) {
	if o.read != nil {
		return o.read(path)
	}
	return safefile.ReadTrusted(path)
}

func (o *Options) getenv(name string) string {
	value, _ := o.Getenv(name)
	return value
}

// Load finds and reads a configuration and all files that it names. from is its file, or
// [EmbeddedDemo]. The environment overrides parts of it: SAFE_ALLOWLIST_PATH, SAFE_TRACE_DIR,
// SAFE_SUMMARIZE and, if the file names no model, LLM_BASE_URL, LLM_MODEL and LLM_API_KEY.
func Load(o Options) (loaded *config.Loaded, from string, err error) {
	overrides := config.Overrides{
		Allowlist: o.getenv("SAFE_ALLOWLIST_PATH"),
		TracesDir: o.getenv("SAFE_TRACE_DIR"),
		Planner:   o.Planner,
		Grants:    o.Grants,
		Closed:    o.Closed,
		LLM: &config.LLM{
			BaseURL: o.getenv("LLM_BASE_URL"),
			Model:   o.getenv("LLM_MODEL"),
			APIKey:  o.getenv("LLM_API_KEY"),
		},
	}

	switch v := o.getenv("SAFE_SUMMARIZE"); v {
	case "", "0":
	case "1":
		overrides.Summary = policy.SummaryAlways
	default:
		return nil, "", fmt.Errorf("SAFE_SUMMARIZE is %q: use 1 to summarize every typed result, or leave it unset", v)
	}

	// The file: a flag, then PGFSM_CONFIG, then pgfsm.yaml in this folder, else the demo.
	from = o.Config
	if from == "" && !o.Demo {
		from = o.getenv("PGFSM_CONFIG")
	}

	if from == "" && !o.Demo {
		if _, err := os.Lstat(config.FileName); err == nil {
			from = config.FileName
		}
	}

	// The embedded demo has its files in the program, except those that the operator names.
	name, read := from, o.readFile
	if from == "" {
		from, name = EmbeddedDemo, config.FileName
		read = func(name string) ([]byte, error) {
			if name == overrides.Allowlist || slices.Contains(overrides.Grants, name) {
				return safefile.ReadTrusted(name)
			}
			return config.Demo.ReadFile(filepath.ToSlash(name))
		}
	}

	loaded, err = config.Load(name, read, overrides)
	var faults config.Errors
	if overrides.Allowlist != "" && errors.As(err, &faults) {
		for _, f := range faults {
			if f.Key == "allowlist" || f.File == overrides.Allowlist {
				return nil, from, fmt.Errorf("%w\n(SAFE_ALLOWLIST_PATH names the allowlist: %s)", err,
					overrides.Allowlist)
			}
		}
	}

	return loaded, from, err
}
