-- A process that speaks newline-delimited JSON-RPC 2.0. This module does not know the meaning of the messages.
local compat = require("pillion.compat")
local log = require("pillion.log")

---@class pillion.RpcError
---@field code integer
---@field message string
---@field data? any

---@alias pillion.Callback fun(err?: pillion.RpcError, result?: any)
---@alias pillion.Reply fun(result: any, err?: pillion.RpcError)

---@class pillion.Rpc
---@field job integer
---@field handlers table<string, fun(params: table, reply?: pillion.Reply, id?: any)>
---@field before_send? fun() called before every message is sent
---@field exited? integer
---@field finish? fun() called after the last output was read
---@field bad integer lines that were not messages
local Rpc = {}
Rpc.__index = Rpc

local M = {}

-- How many milliseconds incoming messages are handled before keys are read again.
local budget = 5
-- Bytes of a large message that are encoded without a pause.
local piece = 256 * 1024

---@class pillion.RpcOptions
---@field cwd? string
---@field env? table<string, string>
---@field handlers table<string, function>
---@field on_exit fun(code: integer, stderr: string[])

---@param cmd string[]
---@param opts pillion.RpcOptions
---@return pillion.Rpc? rpc
---@return string? err
function M.start(cmd, opts)
  local self = setmetatable({
    handlers = opts.handlers,
    pending = {},
    last_id = 0,
    bad = 0,
    parts = {},
    inbox = {},
    first = 1,
    last = 0,
    outbox = nil,
    stderr = {},
  }, Rpc)
  local ok, job = pcall(vim.fn.jobstart, cmd, {
    cwd = opts.cwd,
    env = opts.env and next(opts.env) and opts.env or nil,
    stdin = "pipe",
    stdout_buffered = false,
    on_stdout = function(_, data)
      self:take(data)
    end,
    on_stderr = function(_, data)
      for _, line in ipairs(data) do
        if line ~= "" then
          log.add("info", "stderr: " .. line)
          self.stderr[#self.stderr + 1] = line
          if #self.stderr > 50 then
            table.remove(self.stderr, 1)
          end
        end
      end
    end,
    on_exit = function(_, code)
      self.finish = function() -- called when all its messages were handled
        self.finish, self.exited = nil, code
        local waiting = self.pending
        self.pending = {}
        for _, callback in pairs(waiting) do
          callback({ code = -32000, message = "The sidecar ended (exit code " .. code .. ")" })
        end
        opts.on_exit(code, self.stderr)
      end
      if not self.draining then
        self:drain()
      end
    end,
  })
  if not ok or job <= 0 then
    return nil, ok and ("cannot run " .. cmd[1]) or tostring(job):gsub("^Vim:", "")
  end
  self.job = job
  return self
end

-- An error in a handler is reported; other messages are still handled.
local function guard(what, f, ...)
  local ok, err = xpcall(f, debug.traceback, ...)
  if not ok then
    log.tell("error", "error while handling " .. what .. "; please report it (:Pillion log):\n" .. tostring(err))
  end
  return ok, err
end

-- jobstart gives pieces that were split at newlines; the first one continues the last piece of the call before. The
-- pieces of a long line are kept in a list and joined once.
---@param data string[]
function Rpc:take(data)
  local parts = self.parts
  for i, text in ipairs(data) do
    parts[#parts + 1] = text
    if i < #data then
      local line = #parts == 1 and parts[1] or table.concat(parts)
      self.parts = {}
      parts = self.parts
      if line ~= "" then
        self.last = self.last + 1
        self.inbox[self.last] = line
      end
    end
  end
  if not self.draining then
    self:drain()
  end
end

-- Handles received messages until the time is used up, then continues later so that Neovim can read keys.
function Rpc:drain()
  local started = compat.uv.hrtime()
  while self.first <= self.last do
    local line = self.inbox[self.first]
    self.inbox[self.first] = nil
    self.first = self.first + 1
    self:receive(line)
    if (compat.uv.hrtime() - started) / 1e6 > budget and self.first <= self.last then
      self.draining = true
      vim.defer_fn(function()
        self.draining = false
        self:drain()
      end, 2)
      return
    end
  end
  if self.finish then
    self.finish()
  end
end

-- Handles one message: a request, a notification or a response.
---@param line string JSON
function Rpc:receive(line)
  local ok, msg = compat.json_decode(line)
  if not ok or type(msg) ~= "table" then
    self.bad = self.bad + 1
    log.add("warn", "not a message: " .. line:sub(1, 200))
    return
  end
  if msg.method then
    self:dispatch(msg)
  elseif msg.id ~= nil then
    local callback = self.pending[msg.id]
    self.pending[msg.id] = nil
    if callback then
      guard("an answer", callback, msg.error, msg.result)
    end
  end
end

-- Calls the handler of a request or notification. A request is answered exactly once, even if the handler throws.
---@param msg table
function Rpc:dispatch(msg)
  local handler = self.handlers[msg.method]
  if msg.id == nil then
    if handler then
      guard(msg.method, handler, msg.params or {})
    end
    return
  end
  local answered = false
  local function reply(result, err)
    if answered or self.exited then
      return
    end
    answered = true
    local answer = { jsonrpc = "2.0", id = msg.id, error = err }
    if not err then
      answer.result = result or compat.object()
    end
    self:send(answer)
  end
  if not handler then
    return reply(nil, { code = -32601, message = "method not found: " .. msg.method })
  end
  local ok, err = guard(msg.method, handler, msg.params or {}, reply, msg.id)
  if not ok then
    reply(nil, { code = -32603, message = tostring(err):match("^[^\n]*") })
  end
end

-- Writes bytes to the sidecar.
---@param data string
---@return boolean false once it has ended
function Rpc:write(data)
  if self.exited then
    return false
  end
  return pcall(vim.fn.chansend, self.job, data)
end

---@param msg table
function Rpc:send(msg)
  if self.before_send and not self.flushing then
    self.flushing = true -- keep the order: send what was queued before
    guard("what is sent before", self.before_send)
    self.flushing = false
  end
  local data = compat.json_encode(msg) .. "\n"
  if self.outbox then
    table.insert(self.outbox, data)
    return
  end
  self:write(data)
end

-- Sends a notification with a long text without blocking Neovim: the text is encoded piece by piece. Other messages
-- wait until it has been sent.
---@param head string the message up to the text, as JSON
---@param texts string[] pieces of the text
---@param tail string the rest of the message
---@param change? fun(text: string): string applied to each piece
function Rpc:stream(head, texts, tail, change)
  if self.outbox then
    table.insert(self.outbox, { head, texts, tail, change })
    return
  end
  self.outbox = {}
  self:write(head .. '"')
  local i, rest = 0, nil
  local function more()
    if rest == nil then
      i = i + 1
      rest = texts[i]
    end
    if rest == nil or self.exited then
      self:write('"' .. tail .. "\n")
      local waiting = self.outbox or {}
      self.outbox = nil
      for _, x in ipairs(waiting) do
        if type(x) == "table" then
          self:stream(unpack(x))
        elseif self.outbox then
          table.insert(self.outbox, x)
        else
          self:write(x)
        end
      end
      return
    end
    local now = rest
    if #now > piece then
      local cut = piece
      while cut > piece - 4 and (now:byte(cut + 1) or 0) >= 128 and now:byte(cut + 1) < 192 do
        cut = cut - 1
      end
      now, rest = now:sub(1, cut), now:sub(cut + 1)
    else
      rest = nil
    end
    self:write(compat.json_encode(change and change(now) or now):sub(2, -2))
    vim.defer_fn(more, 1)
  end
  more()
end

---@param method string
---@param params any
---@param callback pillion.Callback
---@return integer id
function Rpc:request(method, params, callback)
  self.last_id = self.last_id + 1
  local id = self.last_id
  if self.exited then
    vim.schedule(function()
      callback({ code = -32000, message = "Pillion is not running" })
    end)
    return id
  end
  self.pending[id] = callback
  self:send({ jsonrpc = "2.0", id = id, method = method, params = params })
  return id
end

---@param method string
---@param params any
function Rpc:notify(method, params)
  self:send({ jsonrpc = "2.0", method = method, params = params })
end

---@param id integer
function Rpc:cancel(id)
  if self.pending[id] then
    self:notify("$/cancel_request", { requestId = id })
  end
end

-- Closes the input of the process, so that it ends; if it does not, it is killed.
---@param wait? integer milliseconds to wait for it
function Rpc:stop(wait)
  if self.exited then
    return
  end
  pcall(vim.fn.chanclose, self.job, "stdin")
  if wait then
    vim.fn.jobwait({ self.job }, wait)
    pcall(vim.fn.jobstop, self.job)
  else
    vim.defer_fn(function()
      pcall(vim.fn.jobstop, self.job)
    end, 3000)
  end
end

return M
