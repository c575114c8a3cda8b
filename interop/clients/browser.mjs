// The browser of clients that are programs of their own. Its argument is the URL.
import { browse } from './oauth.mjs';

await browse(new URL(process.argv[2]));
