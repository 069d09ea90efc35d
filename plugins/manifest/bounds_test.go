package manifest

import "testing"

// TestManyValues: a document whose text is small and whose values are many is
// refused before Go's form of it is made.
func TestManyValues(t *testing.T) {
	for _, c := range []struct {
		doc    string
		most   int
		passes bool
	}{
		{`{"a":[1,2,3]}`, 4, true},
		{`{"a":[1,2,3]}`, 3, false},
		{`{"a":"[,{,\"[,[,[","b":1}`, 2, true},
		{`["\\",1]`, 2, true},
		{`7`, 0, true},
	} {
		var into any
		if err := Unmarshal([]byte(c.doc), &into, c.most); (err == nil) != c.passes {
			t.Errorf("%s with at most %d: %v", c.doc, c.most, err)
		}
	}
}
