// Package warehouse models the warehouses of the stand-in's account: clusters
// and their slots, the queue, resuming and suspending, scaling policies, how long
// statements take by table type and size, and the throttling of hybrid storage.
package warehouse
