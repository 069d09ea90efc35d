package load

import (
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
)

// maxErrors bounds a run worker's dictionary. Errors beyond it share one entry for each class.
const maxErrors = 4096

// The codes of errors that the load engine itself makes.
const (
	codeDrained = "drain_timeout"
)

// dictionary gives distinct errors small ids, from 1. It is safe for concurrent
// use; slots come here only with a failed operation in hand.
type dictionary struct {
	mu      sync.RWMutex
	ids     map[engine.ExecutionError]uint32
	entries []engine.ExecutionError // entries[id-1]
	// classes maps codes and prefixes of them, as the adapter wants it.
	classes map[string]engine.ErrorClass
}

func newDictionary(classes map[string]engine.ErrorClass) *dictionary {
	return &dictionary{ids: make(map[engine.ExecutionError]uint32), classes: classes}
}

// id returns the error's id, with the adapter's class in place of the driver's
// when the adapter names its code.
func (d *dictionary) id(e engine.ExecutionError) uint32 {
	if class, ok := d.classOf(e.Code); ok {
		e.Class = class
	}
	return d.add(e)
}

// add returns the id of an error whose class is settled.
func (d *dictionary) add(e engine.ExecutionError) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if id, ok := d.ids[e]; ok {
		return id
	}
	if len(d.entries) >= maxErrors {
		e = engine.ExecutionError{Class: e.Class, Message: "further distinct errors of this class"}
		if id, ok := d.ids[e]; ok {
			return id
		}
	}
	d.entries = append(d.entries, e)
	id := uint32(len(d.entries))
	d.ids[e] = id
	return id
}

// classOf finds the longest entry that is the code or a prefix of it.
func (d *dictionary) classOf(code string) (engine.ErrorClass, bool) {
	best, found := engine.ErrorClass(""), -1
	for prefix, class := range d.classes {
		if prefix != "" && len(prefix) > found && strings.HasPrefix(code, prefix) {
			best, found = class, len(prefix)
		}
	}
	return best, found >= 0
}

// get returns the entry of an id; 0 and unknown ids give the zero entry.
func (d *dictionary) get(id uint32) engine.ExecutionError {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if id == 0 || int(id) > len(d.entries) {
		return engine.ExecutionError{}
	}
	return d.entries[id-1]
}
