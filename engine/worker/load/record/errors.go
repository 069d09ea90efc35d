package record

import (
	"strings"
	"sync"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/executions"
)

// maxErrors bounds a run worker's dictionary. Errors beyond it share one entry for each class.
const maxErrors = 4096

// Dictionary gives distinct errors small ids, from 1. It is safe for concurrent
// use; connections come here only with a failed operation in hand.
type Dictionary struct {
	mu      sync.RWMutex
	ids     map[engine.ExecutionError]uint32
	entries []engine.ExecutionError // entries[id-1]
	// classes maps codes and prefixes of them, as the adapter wants it.
	classes map[string]engine.ErrorClass
}

// NewDictionary returns an empty one; classes are the adapter's, by code or prefix of one.
func NewDictionary(classes map[string]engine.ErrorClass) *Dictionary {
	return &Dictionary{ids: make(map[engine.ExecutionError]uint32), classes: classes}
}

// ID returns the error's id, with the adapter's class in place of the driver's
// when the adapter names its code. Values that the database repeats in its message are masked: whoever sees the run
// reads what is here, and errors that differ by values alone are one.
func (d *Dictionary) ID(e engine.ExecutionError) uint32 {
	if class, ok := d.classOf(e.Code); ok {
		e.Class = class
	}
	e.Message = executions.Mask(e.Message)
	return d.Add(e)
}

// Add returns the id of an error of Loadstone's own, whose class is settled.
func (d *Dictionary) Add(e engine.ExecutionError) uint32 {
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
func (d *Dictionary) classOf(code string) (engine.ErrorClass, bool) {
	best, found := engine.ErrorClass(""), -1
	for prefix, class := range d.classes {
		if prefix != "" && len(prefix) > found && strings.HasPrefix(code, prefix) {
			best, found = class, len(prefix)
		}
	}
	return best, found >= 0
}

// Get returns the entry of an id; 0 and unknown ids give the zero entry.
func (d *Dictionary) Get(id uint32) engine.ExecutionError {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if id == 0 || int(id) > len(d.entries) {
		return engine.ExecutionError{}
	}
	return d.entries[id-1]
}
