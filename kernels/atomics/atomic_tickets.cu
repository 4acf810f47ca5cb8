// The old value is a ticket: who gets which is open, but each number is drawn once.
extern "C" __global__ void atomic_tickets(unsigned* counter, unsigned* drawn)
{
    unsigned ticket = atomicAdd(counter, 1u);
    atomicAdd(&drawn[ticket], ticket + 100);
}
