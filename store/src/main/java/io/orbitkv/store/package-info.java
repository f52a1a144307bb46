/** The embedded store: query, restore and save of KV blocks; composes index, tiers and recovery. */
package io.orbitkv.store;
