//! Reading transcripts: markers of prompts, and token use.
