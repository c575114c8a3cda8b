package mcp

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An implementation is how a peer names itself. Names are claims, not identities.
type implementation struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// welcome is the result of initialize, and farther down of server/discover, reduced to what is needed. Instructions,
// capabilities and everything else that a server says about itself end here.
type welcome struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    struct{}        `json:"capabilities"`
	ServerInfo      *implementation `json:"serverInfo,omitempty"`
}

type discovered struct {
	ResultType        string         `json:"resultType"`
	SupportedVersions []string       `json:"supportedVersions"`
	Capabilities      struct{}       `json:"capabilities"`
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
			return nil, err
		}
		d.ResultType = "complete"
		d.SupportedVersions = slices.DeleteFunc(d.SupportedVersions, func(v string) bool {
			return !slices.Contains(sdk.SupportedProtocolVersions(), v)
		})
		cut(d.Meta.ServerInfo)
		return json.Marshal(d)
	}
	var w welcome
	if err := json.Unmarshal(result, &w); err != nil {
		return nil, err
	}
	if !slices.Contains(sdk.SupportedProtocolVersions(), w.ProtocolVersion) {
		return nil, fmt.Errorf("it speaks revision %.40q, which is unknown here", w.ProtocolVersion)
	}
	s.protocol.Store(&w.ProtocolVersion)
	cut(w.ServerInfo)
	return json.Marshal(w)
}

func cut(i *implementation) {
	if i != nil {
		i.Name, i.Version = label(i.Name), label(i.Version)
	}
}
