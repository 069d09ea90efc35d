package run_test

import (
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/host"
)

// sampleMachine is what nodes of tests sample: the machine as it is, without the thread that looks how late it wakes,
// which virtual time would wait for, and without what the verdict would say of it.
func sampleMachine() func() engine.Resources {
	sampler := host.New()
	return func() engine.Resources {
		r := sampler.Sample()
		r.Witness = nil
		return r
	}
}
