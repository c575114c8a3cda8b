package api

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
)

// Description is the OpenAPI document of the service, as YAML.
//
//go:embed openapi.yaml
var Description []byte

// asJSON is the same document as JSON.
var asJSON = sync.OnceValues(func() ([]byte, error) {
	doc, err := yaml.YAMLToJSON(Description)
	if err != nil {
		return nil, err
	}
	text := jsontext.Value(doc)
	if err := text.Compact(); err != nil {
		return nil, err
	}
	return text, nil
})

func (h *Handler) openapiYAML(*call) (answer, error) {
	return answer{mime: "application/yaml", body: Description[: len(Description)-1 : len(Description)-1]}, nil
}

func (h *Handler) openapiJSON(*call) (answer, error) {
	doc, err := asJSON()
	return answer{body: doc[:len(doc):len(doc)]}, err
}
