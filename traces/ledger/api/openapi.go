package api

import _ "embed"

// Description is the OpenAPI document of the service, as YAML.
//
//go:embed openapi.yaml
var Description []byte

func (h *Handler) openapiYAML(*visit) (answer, error) {
	return answer{mime: "application/yaml", body: Description}, nil
}
