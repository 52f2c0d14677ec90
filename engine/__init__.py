"""The core: records, ports, scheduler, gateway, pacing, retry, store, ledger, sources."""
