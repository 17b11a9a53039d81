// fill.mjs - see fill.js.
import child_process from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import tls from 'node:tls';
import util from 'node:util';
import node from './node.js';

Object.assign(node, { child_process, crypto, fs, http, net, os, path, tls, util });
