package policy

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"pgfsm/internal/canonical"
	"pgfsm/policy/condition"
	"pgfsm/policy/origin"
	"pgfsm/policy/redact"
	"pgfsm/policy/risk"
	"pgfsm/policy/rules"
	"pgfsm/policy/schema"
)

// A Bundle is a compiled [Content], shared by all runs. It is safe for concurrent use. The zero
// Bundle allows nothing.
type Bundle struct {
	content   Content
	canonical []byte
	text      string // canonical as a string
	digest    canonical.Digest

	servers      []string // the names of the servers
	screens      screens
	finders      map[string]*redact.Set // detectors of input rules, by kind of request
	redact       *redact.Set            // nil: nothing is removed from results
	allow        map[toolKey][]string   // the groups that may call a tool; "" is everybody
	same         map[string]int         // the number of a person, by the nameKey form of a name
	pins         map[toolKey]canonical.Digest
	grants       []*grant
	inputs       map[toolKey]*inputSchema // the schemas that replace those of servers
	outputs      map[toolKey]*schema.Schema
	schemaLimits schema.Limits
	risk         *risk.Model        // nil: no risk rules
	rules        *rules.Set         // nil: no policy, the allowlist decides
	origins      *origin.Rules      // nil: no labels
	items        condition.Programs // the conditions of trusted_if
	reads        reads
	decider      Decider

	mu           sync.Mutex
	catalogs     map[canonical.Digest]*Catalog // compiled, by the digest of their listings
	catalogBytes int                           // of the listings together
	active       *Bundle                       // the last one that CompileActive made
}

// Compile checks and compiles content. The error lists every fault.
func Compile(content Content) (*Bundle, error) {
	b := &Bundle{
		content:      content,
		allow:        make(map[toolKey][]string),
		pins:         make(map[toolKey]canonical.Digest),
		inputs:       make(map[toolKey]*inputSchema),
		outputs:      make(map[toolKey]*schema.Schema),
		schemaLimits: schema.DefaultLimits(),
	}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if content.Format != ContentFormat {
		fault("bundle format is %q, want %q", content.Format, ContentFormat)
	}
	errs = append(errs, content.Limits.check())
	switch content.Summary {
	case SummaryAsked, SummaryAlways, SummaryNever:
	default:
		fault("summary mode %q is not one of asked, always, never", content.Summary)
	}
	var err error
	// Every part is compiled, also after a fault: the operator sees all faults at once.
	if b.screens, err = content.Input.compileScreens(); err != nil {
		errs = append(errs, err)
	}
	if b.finders, err = content.Input.compileFinders(); err != nil {
		errs = append(errs, err)
	}
	if b.redact, err = redact.Compile(content.Redact); err != nil {
		errs = append(errs, err)
	}
	for _, s := range content.Servers {
		b.servers = append(b.servers, s.Name)
	}
	for _, g := range content.Allowlist {
		for _, tool := range g.Tools {
			key := toolKey{g.Server, tool}
			b.allow[key] = append(b.allow[key], g.Group)
		}
	}
	errs = append(errs, b.compilePinsAndGrants(), content.Planner.check())
	for _, declared := range content.Schemas {
		s, err := compileOwn(declared.Schema, b.schemaLimits)
		if err != nil {
			fault("schema of %s %s: %w", declared.Server, declared.Tool, err)
		}
		b.inputs[toolKey{declared.Server, declared.Tool}] = s
	}
	for _, o := range content.Outputs {
		s, err := schema.Compile(o.Schema, b.schemaLimits)
		if err != nil {
			fault("output type of %s %s: %w", o.Server, o.Tool, err)
			continue
		}
		b.outputs[toolKey{o.Server, o.Tool}] = s
	}
	if content.Risk != nil {
		if b.risk, err = risk.Compile(*content.Risk, content.Identity.claimNames()...); err != nil {
			errs = append(errs, err)
		}
	}
	if content.Policy != nil {
		if b.rules, err = rules.Compile(*content.Policy, content.Identity.claimNames()...); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, b.compileLabels())
	// These read the compiled risk rules, policies and labels.
	errs = append(errs, b.checkQueries(), b.compileIdentity())
	if b.canonical, err = canonical.Marshal(&b.content); err != nil {
		errs = append(errs, err)
	}
	b.digest, b.text = canonical.Sum("bundle", b.canonical), string(b.canonical)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return b, nil
}

// compilePinsAndGrants compiles the pins and grants.
func (b *Bundle) compilePinsAndGrants() error {
	var errs []error
	for _, p := range b.content.Pins {
		key := toolKey{p.Server, p.Tool}
		if b.pins[key] != "" {
			errs = append(errs, fmt.Errorf("the pin of %s %s stands twice", clip(p.Server), clip(p.Tool)))
		}
		if _, err := canonical.ParseDigest(string(p.Definition)); err != nil {
			errs = append(errs, fmt.Errorf("the pin of %s %s: %w", clip(p.Server), clip(p.Tool), err))
		}
		b.pins[key] = p.Definition
	}
	if n := len(b.content.Grants); n > MaxGrants {
		return errors.Join(append(errs, fmt.Errorf("there are %d grants; at most %d are read", n, MaxGrants))...)
	}
	for i := range b.content.Grants {
		g, err := compileGrant(&b.content.Grants[i], b.schemaLimits)
		b.grants, errs = append(b.grants, g), append(errs, err)
	}
	return errors.Join(errs...)
}

// check validates the planner's mode and bounds.
func (p *Planner) check() error {
	switch p.Mode {
	case PlannerAuto, PlannerRouter, PlannerLLM:
	default:
		return fmt.Errorf("planner mode %q is not one of auto, router, llm", clip(p.Mode))
	}
	if p.LLM == nil {
		if p.Mode == PlannerLLM {
			return errors.New("planner mode llm has no model")
		}
		return nil
	}
	return errors.Join(
		checkBound("planner.llm.timeout in milliseconds", p.LLM.Timeout, MaxRunTimeout),
		checkBound("planner.llm.max_tokens", int64(p.LLM.MaxTokens), MaxTokens),
	)
}

func (l Limits) check() error {
	return errors.Join(
		checkBound("limits.plan_bytes", int64(l.PlanBytes), MaxPlanBytes),
		checkBound("limits.arguments_bytes", int64(l.ArgumentsBytes), MaxArgumentsBytes),
		checkBound("limits.json_depth", int64(l.JSONDepth), MaxJSONDepth),
		checkBound("limits.result_bytes", int64(l.ResultBytes), MaxResultBytes),
		checkBound("limits.run_timeout in milliseconds", l.RunTimeout, MaxRunTimeout),
	)
}

// checkBound checks a bound. Zero is an error: it never means unlimited.
func checkBound(name string, v, most int64) error {
	if v < 1 || v > most {
		return fmt.Errorf("%s is %d; it must be 1 to %d", name, v, most)
	}
	return nil
}

// Content returns the content that the bundle was compiled from. It must not be changed.
func (b *Bundle) Content() *Content { return &b.content }

// Canonical returns the content in canonical form. It must not be changed.
func (b *Bundle) Canonical() []byte { return b.canonical }

// Text returns the content in canonical form as a string, without a copy.
func (b *Bundle) Text() string { return b.text }

// Servers returns the names of the servers, in the operator's order. They must not be changed.
func (b *Bundle) Servers() []string { return b.servers }

// Redaction returns what is removed from the results of a tool; for an empty tool, from everything that a
// server sends. It is nil if nothing is.
func (b *Bundle) Redaction(server, tool string) *redact.Set { return b.redact.For(server, tool) }

// Digest identifies the bundle.
func (b *Bundle) Digest() canonical.Digest { return b.digest }

// Limits returns the bounds of a run.
func (b *Bundle) Limits() Limits { return b.content.Limits }

// Bounds of the compiled catalogs that a bundle caches. The gateway caches one for each tool that
// is called.
const (
	maxCatalogs     = 1024
	maxCatalogBytes = 64 << 20 // for the servers' listings together
)

// Catalog returns the catalog of listings. It is compiled once for each digest, which the caller
// computes over all of the listings, as long as the bounds of the cache allow.
func (b *Bundle) Catalog(digest canonical.Digest, listings []Listing) *Catalog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.catalogs[digest]; c != nil {
		return c
	}

	// A cache that is full starts again, which is simpler than to forget catalogs one by one.
	size := 0
	for i := range listings {
		for _, page := range listings[i].Pages {
			size += len(page)
		}
	}
	if b.catalogs == nil || len(b.catalogs) >= maxCatalogs || b.catalogBytes+size > maxCatalogBytes {
		b.catalogs, b.catalogBytes = make(map[canonical.Digest]*Catalog), 0
	}

	c := b.readCatalog(listings)
	c.digest = digest
	b.catalogs[digest], b.catalogBytes = c, b.catalogBytes+size
	return c
}

// WantsSummary reports whether the operator wants a typed result of this request summarized.
func (b *Bundle) WantsSummary(request string) bool {
	switch b.content.Summary {
	case SummaryAlways:
		return true
	case SummaryAsked:
		folded := strings.ToLower(request)
		return strings.Contains(folded, "summarize") || strings.Contains(folded, "summarise")
	}
	return false
}
