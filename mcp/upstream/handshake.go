package upstream

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An implementation is how a peer names itself. Names are claims, not identities.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// capabilities are reduced to the one that changes what we do, and to none for the SDK.
type capabilities struct {
	Tools jsontext.Value `json:"tools,omitzero"`
}

// announced takes from c whether the server says that it announces changes of its tools.
func (c *capabilities) announced() bool {
	yes := false
	err := members(c.Tools, func(name string, value jsontext.Value) error {
		yes = yes || name == "listChanged" && value.Kind() == 't'
		return nil
	})
	*c = capabilities{}
	return err == nil && yes
}

// welcome is the result of initialize, and farther down of server/discover, reduced to what is needed. Instructions,
// capabilities and everything else that a server says about itself end here.
type welcome struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    capabilities    `json:"capabilities"`
	ServerInfo      *implementation `json:"serverInfo,omitempty"`
}

type discovered struct {
	ResultType        string         `json:"resultType"`
	SupportedVersions []string       `json:"supportedVersions"`
	Capabilities      capabilities   `json:"capabilities"`
	Meta              discoveredMeta `json:"_meta"`
}

type discoveredMeta struct {
	ServerInfo *implementation `json:"io.modelcontextprotocol/serverInfo,omitempty"`
}

// greet reads the result of the handshake strictly (no duplicate names) and returns the reduced form for the SDK.
// After initialize the protocol version is known, and every later HTTP request names it.
func (s *session) greet(method string, result []byte) ([]byte, error) {
	if method == methodDiscover {
		var d discovered
		if err := json.Unmarshal(result, &d); err != nil {
			return nil, s.retold(result, err, func(doc []byte) error { return json.Unmarshal(doc, &d) })
		}
		d.ResultType = "complete"
		d.SupportedVersions = slices.DeleteFunc(d.SupportedVersions, func(v string) bool {
			return !slices.Contains(sdk.SupportedProtocolVersions(), v)
		})
		s.news.announced.Store(d.Capabilities.announced())
		s.cut(d.Meta.ServerInfo)
		return json.Marshal(d)
	}
	var w welcome
	if err := json.Unmarshal(result, &w); err != nil {
		return nil, s.retold(result, err, func(doc []byte) error { return json.Unmarshal(doc, &w) })
	}
	if !slices.Contains(sdk.SupportedProtocolVersions(), w.ProtocolVersion) {
		return nil, fmt.Errorf("it speaks revision %.40q, which is unknown here", s.secrets.String(w.ProtocolVersion))
	}
	s.protocol.Store(&w.ProtocolVersion)
	s.news.announced.Store(w.Capabilities.announced())
	s.cut(w.ServerInfo)
	return json.Marshal(w)
}

func (s *session) cut(i *implementation) {
	if i != nil {
		i.Name, i.Version = label(i.Name, s.secrets), label(i.Version, s.secrets)
	}
}
