package postgres

import (
	"maps"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
)

// sealedIn is the key of a setting that is sealed: {"SINK.URL": {"sealed": "…"}}.
const sealedIn = "sealed"

// bound is what a secret is sealed for, so that it opens in its own sink alone.
func bound(sink, path string) string { return "sink:" + sink + ":" + path }

// sealed is the configuration of a sink as it is kept.
func (r *CatalogStore) sealed(s catalog.Sink) connector.Config {
	kept := maps.Clone(s.Config)
	for path, v := range kept {
		if text, is := v.(string); is && connector.IsSecret(path) {
			kept[path] = map[string]string{sealedIn: r.keys.Seal([]byte(text), bound(s.Name, path))}
		}
	}
	return kept
}

// open opens what is sealed in the configuration of a sink. What does not open is empty afterwards: that sink cannot
// be used, but dropped, and the rest of the catalog is there.
func (r *CatalogStore) open(s catalog.Sink) {
	for path, v := range s.Config {
		box, is := v.(map[string]any)
		if !is {
			continue
		}
		text, _ := box[sealedIn].(string)
		plain, err := r.keys.Open(text, bound(s.Name, path))
		if err != nil {
			plain = nil
		}
		s.Config[path] = string(plain)
	}
}
