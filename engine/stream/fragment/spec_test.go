package fragment_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
)

// TestANodeKnowsWhoseQueryItRuns: what the query holds there counts for its user.
func TestANodeKnowsWhoseQueryItRuns(t *testing.T) {
	s := fragment.Spec{Host: "n", Query: catalog.Query{Name: "q", CreatedBy: "bob", CreatedByID: "1"}}
	s.Contents.Sinks = []catalog.Sink{{Name: "s"}}
	text, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if read, err := fragment.Unmarshal(text); err != nil || read.Query.CreatedBy != "bob" ||
		read.Query.Author() != "1" {
		t.Errorf("%+v, %v", read.Query, err)
	}
}
