package hostiletest

import (
	"fmt"
	"sync"
)

// Stage is where a file is stopped.
type Stage string

// The stations, in the order in which a file meets them.
const (
	// Gate: the static parser refuses it in process; no compiler sees it.
	Gate Stage = "gate"
	// Quarantine: it passes the gate, and compiling or trying it in the child process refuses it.
	Quarantine Stage = "quarantine"
	// Run: it behaves until it is used, and then fails with an error of the contract.
	Run Stage = "run"
	// Harmless: it looks wrong but does no harm, and is accepted.
	Harmless Stage = "harmless"
	// Bounded: whether the child's limits stop it depends on the machine. All that is
	// asked is that an answer comes, and that the server lives.
	Bounded Stage = "bounded"
)

// File is one file of the corpus.
type File struct {
	// Name is unique, "class/what".
	Name, Class string
	Stage       Stage
	// Message is part of the sentence with which it is refused, or fails; "" is any.
	Message string
	// Large files take long to upload and to read.
	Large bool
	// Slow files take the child seconds, by design or by what they do.
	Slow bool
	make func() []byte
}

// Bytes makes the file. It is always the same.
func (f File) Bytes() []byte { return f.make() }

// list collects the files of one class.
type list struct {
	class string
	files []File
}

func (l *list) add(station Stage, name, says string, build func() []byte) *File {
	l.files = append(l.files, File{Name: l.class + "/" + name, Class: l.class, Stage: station, Message: says, make: build})
	return &l.files[len(l.files)-1]
}

// plugin adds a plugin that is honest but for p.
func (l *list) plugin(station Stage, name, says string, p plugin) *File {
	return l.add(station, name, says, func() []byte { return p.build() })
}

// raw adds bytes that are no module at all, or not made by plugin.
func (l *list) raw(station Stage, name, says string, b []byte) *File {
	return l.add(station, name, says, func() []byte { return b })
}

var corpus = sync.OnceValue(func() []File {
	var all []File
	names := map[string]bool{}
	for _, c := range []struct {
		class string
		fill  func(*list)
	}{
		{"formats", formats}, {"counts", counts}, {"leb", lebs}, {"truncated", truncated}, {"sections", sections},
		{"locals", locals}, {"tables", tables}, {"memory", memories}, {"nesting", nesting}, {"functions", functions},
		{"compiler", compiler},
		{"start", starts}, {"trees", trees}, {"loops", loops}, {"bulk", bulk}, {"recursion", recursions},
		{"exports", exports}, {"imports", imports}, {"wasi", wasi}, {"logs", logs},
		{"pointers", pointers}, {"batches", batches}, {"rows", rowBatches}, {"transactions", transactions},
		{"manifests", manifests}, {"schemas", schemas}, {"answers", answers}, {"later", delayedFaults},
	} {
		l := &list{class: c.class}
		c.fill(l)
		for _, f := range l.files {
			if names[f.Name] {
				panic(fmt.Sprintf("two hostile files are called %s", f.Name))
			}
			names[f.Name] = true
		}
		all = append(all, l.files...)
	}
	return all
})

// Corpus returns all files, always in the same order.
func Corpus() []File { return corpus() }

// Honest is a small plugin that keeps the contract. It announces how many data
// segments it has, so that no proper prefix of it is a module too.
func Honest() []byte {
	return plugin{after: func(m *module) {
		n := uint32(len(m.data))
		m.count = &n
	}}.build()
}

// Runnable is a plugin called "honest" that runs on any Postgres, without a table.
func Runnable() []byte {
	return plugin{manifest: `{"kind":"workload","name":"honest","version":"1.0.0",` + oneStatement + `}`}.build()
}
