package worker

import "testing"

func TestCapacityFollowsTheMachine(t *testing.T) {
	const gb = 1 << 30
	for _, c := range []struct {
		cores  float64
		memory int64
		want   int
	}{
		{2, 16 * gb, 8192}, {64, 16 * gb, 32768}, {2, gb / 2, 1024}, {0.1, 16 * gb, 409}, {2, 0, 8192},
		{0.01, 1 << 20, minCapacity},
	} {
		if got := capacityOf(c.cores, c.memory); got != c.want {
			t.Errorf("%v cores, %d MB: %d connections, want %d", c.cores, c.memory>>20, got, c.want)
		}
	}
	if n := NewNode(Options{}); n.hello().Capacity < minCapacity {
		t.Errorf("a node says that it takes %d connections", n.hello().Capacity)
	}
	if n := NewNode(Options{Capacity: -1}); n.hello().Capacity != 0 {
		t.Errorf("a node without a bound says %d", n.hello().Capacity)
	}
}
