package sdk_test

import (
	"errors"
	"fmt"

	"github.com/loadstone-db/loadstone/sdk"
	"github.com/loadstone-db/loadstone/sdk/abi"
	"github.com/loadstone-db/loadstone/sdk/sdktest"
)

// greetings looks people up one after another.
type greetings struct{}

func (greetings) Manifest() sdk.Manifest {
	return sdk.Manifest{Name: "greetings", Version: "1.0.0",
		Statements: []sdk.Statement{{ID: "hello", Kind: sdk.PointLookup,
			SQL:   map[string]string{"postgres": "SELECT name FROM people WHERE id = $1"},
			Binds: []sdk.Bind{{Name: "id", Type: sdk.I64}}}}}
}

func (greetings) Open(sdk.OpenRequest) (sdk.Generator, error) { return &people{}, nil }

type people struct{ last int64 }

func (p *people) Fill(b *sdk.Batch, max int) error {
	for range max {
		p.last++
		b.Op(0) // the first statement of the manifest
		b.I64(p.last)
	}
	return nil
}

// A workload plugin is a type with a manifest, whose streams fill batches. In a module
// its init function calls sdk.ServeWorkload; natively sdktest drives it.
func Example() {
	p := sdktest.Workload(greetings{})
	var manifest struct{ Name string }
	if err := p.Describe(&manifest); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(manifest.Name)
	if err := p.Open(map[string]any{"seed": 1}); err != nil {
		fmt.Println(err)
		return
	}
	ops, err := p.Fill(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, op := range ops {
		fmt.Println(op.Statement, op.Args[0].I)
	}
	// Output:
	// greetings
	// 0 1
	// 0 2
	// 0 3
}

// A workload that replays something is fed by the host: it asks with ErrFeedMe, and a
// chunk without operations says that there are no more.
func ExampleFeeder() {
	p := sdktest.Workload(echoes{})
	if err := p.Open(map[string]any{}); err != nil {
		fmt.Println(err)
		return
	}
	var chunk abi.Batch
	chunk.Reset()
	chunk.Op(0)
	chunk.I64(42)
	for _, food := range [][]byte{chunk.Bytes(), nil} {
		_, err := p.Fill(10)
		fmt.Println(errors.Is(err, sdk.ErrFeedMe))
		if err := p.Feed(food); err != nil {
			fmt.Println(err)
			return
		}
		ops, err := p.Fill(10)
		fmt.Println(len(ops), err)
	}
	// Output:
	// true
	// 1 <nil>
	// true
	// 0 ended
}

// echoes gives out what it is fed.
type echoes struct{ greetings }

func (echoes) Open(sdk.OpenRequest) (sdk.Generator, error) { return &echo{}, nil }

type echo struct {
	chunk []byte
	over  bool
}

func (e *echo) Feed(chunk []byte) error {
	if e.chunk, e.over = chunk, len(chunk) == 0; e.over {
		sdk.Log(0, "there is no more to say") // a line in the log of the run; natively nothing
	}
	return nil
}

func (e *echo) Fill(b *sdk.Batch, _ int) error {
	switch {
	case e.over:
		return nil
	case e.chunk == nil:
		return sdk.ErrFeedMe
	}
	ops, err := abi.Decode(e.chunk)
	e.chunk = nil
	for _, op := range ops {
		b.Op(op.Statement)
		b.I64(op.Args[0].I)
	}
	return err
}
