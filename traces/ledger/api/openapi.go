package api

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"
)

// Description is the OpenAPI document of the service, as YAML.
//
//go:embed openapi.yaml
var Description []byte

// asJSON returns the same document as JSON.
var asJSON = sync.OnceValues(func() ([]byte, error) {
	var doc any
	if err := yaml.Unmarshal(Description, &doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc, json.Deterministic(true))
})

func (h *Handler) openapiYAML(*visit) (answer, error) {
	return answer{mime: "application/yaml", body: Description[: len(Description)-1 : len(Description)-1]}, nil
}

func (h *Handler) openapiJSON(*visit) (answer, error) {
	doc, err := asJSON()
	return answer{body: doc[:len(doc):len(doc)]}, err
}
