package manifest

import (
	"fmt"

	"github.com/loadstone-db/loadstone/engine/base/jsonx"
)

// The most values that a document of a guest may hold. Go's form of a document is
// many times as large as its text: 4 MB of empty objects become hundreds of megabytes.
const (
	// maxManifestValues is for manifests, tables and statements.
	maxManifestValues = 200_000
	// MaxAnswerValues is for what adapters answer, which may be a sample of keys.
	MaxAnswerValues = 1_000_000
)

// MalformedError is a document of a guest that is not the JSON that is expected.
type MalformedError struct{ cause error }

func (e *MalformedError) Error() string { return e.cause.Error() }
func (e *MalformedError) Unwrap() error { return e.cause }

// Unmarshal reads a document of a guest that holds at most so many values, and no member of an object twice.
func Unmarshal(doc []byte, into any, limit int) error {
	if n := values(doc, limit); n > limit {
		return fmt.Errorf("it holds more than %d values", limit)
	}
	if err := jsonx.Read(doc, into); err != nil {
		return err
	}
	return jsonx.CheckDuplicateKeys(doc, "parameters")
}

// values counts what begins a value in a list or an object, up to one above most;
// in what is no JSON, anything.
func values(doc []byte, limit int) int {
	n, quoted := 0, false
	for i := 0; i < len(doc) && n <= limit; i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}
