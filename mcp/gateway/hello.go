package gateway

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"pgfsm/mcp/gateway/session"
	"pgfsm/mcp/upstream"
	"pgfsm/mcp/wire"
)

// extensionTasks is the name of the Tasks extension in capabilities.
const extensionTasks = "io.modelcontextprotocol/tasks"

// helloWait is how long a client of all servers waits at most for those whose capabilities are not known yet. What comes later
// is in use without having been announced.
const connectWait = 2 * time.Second

// abilities are what a client says that it can do for servers.
type clientCapabilities struct {
	sampling, samplingContext, samplingTools bool
	elicitation, form, url                   bool
	roots, rootsChanged                      bool
	tasks                                    bool
}

// opens reports whether the client can have a person open a URL.
func (a clientCapabilities) showsURLs() bool { return a.elicitation && a.url }

// readAbilities reads the client's capabilities. What is not known is not kept: nothing of it is passed on.
func readClientCapabilities(doc jsontext.Value) (a clientCapabilities) {
	wire.Each(doc, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if value.Kind() != '{' {
			return
		}
		part := func(member string) bool {
			v := wire.Member(value, member)
			return v != nil && v.Kind() != 'n' && v.Kind() != 'f'
		}
		switch name {
		case "sampling":
			a.sampling, a.samplingContext, a.samplingTools = true, part("context"), part("tools")
		case "elicitation":
			a.elicitation, a.form, a.url = true, part("form"), part("url")
		case "roots":
			a.roots, a.rootsChanged = true, part("listChanged")
		case "extensions":
			a.tasks = part(extensionTasks)
		}
	})
	return a
}

// told is what a server hears of the client's capabilities: those that are exposed, in one spelling.
func (a clientCapabilities) forServer(e Expose) jsontext.Value {
	var b object
	if a.sampling && e.Has(ExposeSampling) {
		var in object
		in.addIf(a.samplingContext, "context", `{}`)
		in.addIf(a.samplingTools, "tools", `{}`)
		b.add("sampling", in.done())
	}
	if a.elicitation && e.Has(ExposeElicitation) {
		var in object
		in.addIf(a.form, "form", `{}`)
		in.addIf(a.url, "url", `{}`)
		b.add("elicitation", in.done())
	}
	if a.roots && e.Has(ExposeRoots) {
		var in object
		in.addIf(a.rootsChanged, "listChanged", `true`)
		b.add("roots", in.done())
	}
	return b.done()
}

// An object is a JSON object being written.
type object []byte

func (o *object) add(name string, value []byte) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(wire.AppendQuote(*o, name), ':'), value...)
}

func (o *object) addIf(yes bool, name, value string) {
	if yes {
		o.add(name, []byte(value))
	}
}

func (o *object) done() jsontext.Value {
	if len(*o) == 0 {
		return jsontext.Value(`{}`)
	}
	return append(jsontext.Value(*o), '}')
}

// offers are what a server says that it has beside tools.
type serverCapabilities struct {
	logging, completions      bool
	prompts, promptsChanged   bool
	resources, resourcesChanged bool // resourcesMoved: it says when its list of resources changes
	subscribe                 bool
}

// readOffers reads a server's capabilities.
func readServerCapabilities(doc jsontext.Value) (o serverCapabilities) {
	wire.Each(doc, func(p wire.Piece) { // what cannot be read offers nothing
		if p.Value[0] != '{' {
			return
		}
		yes := func(member string) (found bool) {
			wire.Each(p.Value, func(in wire.Piece) { found = found || in.Name == member && string(in.Value) == "true" })
			return found
		}
		switch p.Name {
		case "logging":
			o.logging = true
		case "completions":
			o.completions = true
		case "prompts":
			o.prompts, o.promptsChanged = true, yes("listChanged")
		case "resources":
			o.resources, o.resourcesChanged, o.subscribe = true, yes("listChanged"), yes("subscribe")
		}
	})
	return o
}

// exposed is what of it agents may use.
func (o serverCapabilities) exposed(e Expose) serverCapabilities {
	prompts, resources := e.Has(ExposePrompts), e.Has(ExposeResources)
	return serverCapabilities{
		logging: o.logging && e.Has(ExposeLogging), completions: o.completions && e.Has(ExposeCompletion),
		prompts: o.prompts && prompts, promptsChanged: o.promptsChanged && prompts,
		resources: o.resources && resources, resourcesChanged: o.resourcesChanged && resources, subscribe: o.subscribe && resources,
	}
}

func (o serverCapabilities) or(p serverCapabilities) serverCapabilities {
	return serverCapabilities{
		logging: o.logging || p.logging, completions: o.completions || p.completions,
		prompts: o.prompts || p.prompts, promptsChanged: o.promptsChanged || p.promptsChanged,
		resources: o.resources || p.resources, resourcesChanged: o.resourcesChanged || p.resourcesChanged, subscribe: o.subscribe || p.subscribe,
	}
}

// capabilities is what a client is told.
func (o serverCapabilities) capabilities(tools, tasks bool) jsontext.Value {
	var b object
	if o.completions {
		b.add("completions", []byte(`{}`))
	}
	if tasks {
		b.add("extensions", []byte(`{"`+extensionTasks+`":{}}`))
	}
	if o.logging {
		b.add("logging", []byte(`{}`))
	}
	if o.prompts {
		var in object
		in.addIf(o.promptsChanged, "listChanged", `true`)
		b.add("prompts", in.done())
	}
	if o.resources {
		var in object
		in.addIf(o.resourcesChanged, "listChanged", `true`)
		in.addIf(o.subscribe, "subscribe", `true`)
		b.add("resources", in.done())
	}
	if tools {
		b.add("tools", []byte(`{"listChanged":true}`))
	}
	return b.done()
}

// offered is what the endpoint's servers offer and the operator exposes. One that cannot be reached offers nothing. For one
// server that is asked now; of many, what is known already is taken, and the rest waited for a moment.
func (g *Gateway) offeredCapabilities(ctx context.Context, q *request) (all serverCapabilities) {
	if s := q.endpoint.server; s != nil {
		if l, err := g.linkTo(ctx, q, s); err == nil {
			all = readServerCapabilities(l.Hello().Capabilities).exposed(s.Expose)
			l.release()
		}
		return all
	}
	ctx, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	found := make([]serverCapabilities, len(q.endpoint.servers))
	var wg sync.WaitGroup
	for i, s := range q.endpoint.servers {
		if s.Expose&^(ExposeTools|ExposeProgress|ExposeCancellation) == 0 {
			continue // nothing of it is announced
		}
		if o, ok := g.pool.capabilitiesOf(s.Name); ok {
			found[i] = o.exposed(s.Expose)
			continue
		}
		wg.Go(func() {
			if l, err := g.linkTo(ctx, q, s); err == nil {
				found[i] = readServerCapabilities(l.Hello().Capabilities).exposed(s.Expose)
				l.release()
			}
		})
	}
	wg.Wait()
	for _, o := range found {
		all = all.or(o)
	}
	return all
}

// initialize opens a session.
func (g *Gateway) initialize(ctx context.Context, q *request) []byte {
	if q.session != nil {
		return q.refuse(wire.InvalidRequest, "the session has begun already")
	}
	var wanted string
	var can clientCapabilities
	wire.Each(q.Params, func(member wire.Piece) {
		name, value := member.Name, member.Value
		switch name {
		case "protocolVersion":
			wanted, _ = wire.Text(value)
		case "capabilities":
			can = readClientCapabilities(value)
		}
	})
	if wanted == "" {
		return q.refuse(wire.InvalidParams, `"protocolVersion" is missing`)
	}
	revision := session.StatefulRevisions[0]
	if slices.Contains(session.StatefulRevisions, wanted) {
		revision = wanted
	}
	s, err := g.openSession(q, revision, can)
	if err != nil {
		return q.refuse(codeBusy, "%v", err)
	}
	q.session, q.Session, q.Protocol = s, s.Session, revision

	var b object
	b.add("protocolVersion", wire.Quote(revision))
	b.add("capabilities", g.capabilities(ctx, q))
	b.add("serverInfo", infoOf(g.options.Info))
	return q.rawResult(b.done())
}

// codeBusy is the error code for what is not taken because too much is under way.
const codeBusy = -32000

func (g *Gateway) capabilities(ctx context.Context, q *request) jsontext.Value {
	tools := len(q.endpoint.exposing(ExposeTools)) > 0
	return g.offeredCapabilities(ctx, q).capabilities(tools, tools && g.options.Tasks)
}

// discover answers server/discover.
func (g *Gateway) discover(ctx context.Context, q *request) []byte {
	var versions []byte
	for _, v := range session.Revisions() {
		versions = append(append(versions, ','), wire.Quote(v)...)
	}
	versions[0] = '['
	var b object
	b.add("supportedVersions", append(versions, ']'))
	b.add("capabilities", g.capabilities(ctx, q))
	b.add("ttlMs", strconv.AppendInt(nil, g.options.MaxAge.Milliseconds(), 10))
	b.add("cacheScope", []byte(`"private"`))
	return q.result(b.done())
}

// infoOf is a name and a version as the protocol writes them.
func infoOf(info upstream.Info) jsontext.Value {
	var b object
	b.add("name", wire.Quote(info.Name))
	b.add("version", wire.Quote(info.Version))
	return b.done()
}

// An about is what a request of the stateless revisions says of its client.
type declaredMeta struct {
	capabilities   clientCapabilities
	logLevel severity // of the log that is wanted; zero: none
}

// readMeta reads the _meta of a stateless request.
func (q *request) readMeta() {
	wire.Each(q.Params, func(member wire.Piece) {
		name, value := member.Name, member.Value
		if name != "_meta" {
			return
		}
		wire.Each(value, func(member wire.Piece) {
			name, value := member.Name, member.Value
			switch name {
			case metaCapabilities:
				q.declared.capabilities = readClientCapabilities(value)
			case metaLogLevel:
				word, _ := wire.Text(value)
				q.declared.logLevel = severityOf(word)
			}
		})
	})
}

// can are the abilities of the request's client: those of its session, or of the request itself.
func (q *request) capabilities() clientCapabilities {
	if q.session != nil {
		return q.session.capabilities
	}
	return q.declared.capabilities
}
