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
	text, err := json.Marshal(doc, json.Deterministic(true))
	return append(text, '\n'), err
})

func (h *Handler) openapiYAML(*visit) (answer, error) {
	return answer{mime: "application/yaml", body: Description}, nil
}

func (h *Handler) openapiJSON(*visit) (answer, error) {
	doc, err := asJSON()
	return answer{mime: "application/json", body: doc}, err
}
