package host

import "testing"

// TestProcessorsAreLent: at most as many as the process has, and what was lent is returned.
func TestProcessorsAreLent(t *testing.T) {
	const own = 3
	procs := own
	p := processorPool{restore: func() {}, procs: func(n int) int {
		before := procs
		if n > 0 {
			procs = n
		}
		return before
	}}
	n := 0
	for p.lend() {
		n++
		if procs != own+n || p.ownCount() != own {
			t.Errorf("%d processors, %d own, with %d lent", procs, p.ownCount(), n)
		}
	}
	if n != own {
		t.Errorf("%d were lent beside %d", n, own)
	}
	p.lendBeside()
	if procs != own+n+1 || p.ownCount() != own || p.lend() {
		t.Errorf("%d processors, %d own, with one more beside", procs, p.ownCount())
	}
	for range n {
		p.release()
	}
	if procs != own+1 || p.ownCount() != own {
		t.Errorf("%d processors, %d own, with one beside", procs, p.ownCount())
	}
	p.releaseBeside()
	if procs != own || p.ownCount() != own {
		t.Errorf("%d processors afterwards", procs)
	}
}
